//! The content of an update, the point to resume from, and both after a backup is restored.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::request::Request;
use crate::support::server::{Directory, Server, has_sqlite3, server, shared};
use crate::support::stream::Stream;

/// Time enough for a notification to arrive.
const QUIET: Duration = Duration::from_millis(1500);

const REVISION: &str = "gatewren/revision";
const AFTER: &str = "gatewren/after";
const PATCHES: &str = "gatewren/patches";

fn listen(client: &Client, uri: &str) -> Request {
    let filter = json!({ "resourceSubscriptions": [uri] });
    client
        .modern("subscriptions/listen")
        .param("notifications", filter)
}

fn open(request: &Request) -> Stream {
    let mut stream = request.open();
    let first = stream.message();
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "{first}"
    );
    stream
}

/// Returns the `_meta` of the next update.
fn told(stream: &mut Stream) -> Value {
    let message = stream.call_message();
    assert_eq!(
        message["method"], "notifications/resources/updated",
        "{message}"
    );
    message["params"]["_meta"].clone()
}

/// Returns the revision at which a resource is read.
fn read(server: &Server, uri: &str) -> u64 {
    let read = server.client().modern("resources/read").uri(uri).send();
    read.result()["contents"][0]["_meta"][REVISION]
        .as_u64()
        .unwrap()
}

#[test]
fn an_update_says_from_which_revision_to_which_and_the_patches_to_who_wants_them() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let uri = "gatewren:///public/ranged";
    let wanted = json!({ "experimental": { PATCHES: {} } });
    let client = server.client();
    let request = listen(&client, uri);
    let mut plain = open(&request);
    let with_patches = request.mcp_meta("clientCapabilities", wanted.clone());
    let session = client.session_with("2025-06-18", wanted);
    session.subscribe(uri);
    let mut streams = [open(&with_patches), session.stream()];
    let before = read(&server, "gatewren:///public");
    server.put("ranged", &json!({ "at": 1 }));
    let meta = told(&mut plain);
    let (after, upto) = (
        meta[AFTER].as_u64().unwrap(),
        meta[REVISION].as_u64().unwrap(),
    );
    assert!(before <= after && after < upto, "{meta}");
    assert!(meta.get(PATCHES).is_none(), "{meta}");
    for stream in &mut streams {
        let meta = told(stream);
        assert_eq!(meta[REVISION], upto);
        let [revision] = meta[PATCHES].as_array().unwrap().as_slice() else {
            panic!("{meta}")
        };
        assert_eq!(
            (&revision["id"], &revision["actor"]),
            (&json!(upto), &json!("local:test"))
        );
        let patch = json!([{ "op": "add", "path": "/public/ranged", "value": { "at": 1 } }]);
        assert_eq!(revision["patch"], patch);
    }
    // A write above the watched value does not reveal its neighbours, and a long value is not included.
    server.put("ranged", &json!("x".repeat(9_000)));
    for stream in &mut streams {
        let meta = told(stream);
        assert!(
            meta[REVISION].as_u64().unwrap() > upto && meta.get(PATCHES).is_none(),
            "{meta}"
        );
    }
}

#[test]
fn a_client_that_comes_back_says_up_to_where_it_knows_the_state() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let uri = "gatewren:///public/resumed";
    let from = |since: Value| listen(&server.client(), uri).meta("gatewren/since", since);
    server.put("resumed", &json!(1));
    let known = told(&mut open(&from(json!(0))))[REVISION].as_u64().unwrap();
    server.put("resumed-not", &json!(1));
    open(&from(json!(known))).stays_quiet(QUIET);
    server.put("resumed", &json!(2));
    let meta = told(&mut open(&from(json!(known))));
    assert_eq!(meta[AFTER], known);
    assert!(meta[REVISION].as_u64().unwrap() > known, "{meta}");
    let meta = told(&mut open(&from(json!(1_000_000_000))));
    assert_eq!(meta["gatewren/resync"], true, "{meta}");
    assert_eq!(from(json!("1")).send().verdict(), (200, -32_602));
}

#[test]
fn how_often_a_client_is_told_can_be_set() {
    if !has_sqlite3() {
        return;
    }
    let settings = "[limits]\nupdate_interval = \"1m\"\n";
    let server = server().settings(settings).start();
    let mut stream = open(&listen(&server.client(), "gatewren:///public/seldom"));
    server.put("seldom", &json!(1));
    told(&mut stream);
    server.put("seldom", &json!(2));
    stream.stays_quiet(QUIET);
}

#[test]
fn what_was_sent_and_never_read_is_told_again_after_a_stop() {
    if !has_sqlite3() {
        return;
    }
    let home = Directory::new();
    let mut before = server().directory(&home.0).start();
    let uri = "gatewren:///public/unread";
    let session = before.client().session("2025-11-25");
    session.subscribe(uri);
    let mut stream = session.get().open();
    let primed = stream.event().id.unwrap();
    let mut witness = open(&listen(&before.client(), uri));
    before.put("unread", &json!(1));
    let revision = told(&mut witness)[REVISION].clone();
    // The update was most likely sent on the other stream too; that stream is dropped with all unread data.
    std::thread::sleep(Duration::from_millis(200));
    drop(stream);
    before.signal(Signal::SIGTERM);
    before.ended();
    drop(before);

    let after = server().directory(&home.0).start();
    let session = session.carried_on_by(&after.client());
    let mut stream = session.get().header("last-event-id", &primed).open();
    assert_eq!(told(&mut stream)[REVISION], revision);
}

/// More updates than a session keeps for its streams.
const MANY: usize = 800;

#[test]
fn what_is_no_longer_kept_of_a_lost_stream_is_told_again_from_the_log() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    server.put("many-kept", &json!({}));
    let uris = (0..MANY).map(|n| format!("gatewren:///public/many-kept/{n}"));
    let uris: Vec<String> = uris.collect();
    let client = server.client();
    let session = client.session("2025-11-25");
    let mut connection = client.connection();
    for uri in &uris {
        let request = session.request("resources/subscribe").uri(uri);
        assert_eq!(request.send_over(&mut connection).result(), json!({}));
    }
    // The state has changed since it subscribed: the stream begins before the newest revision.
    let newest = server.put("many-others", &json!(1));
    wait_until("the server has seen it", IN_TIME, || {
        read(&server, "gatewren:///public") >= newest
    });
    let mut stream = session.get().open();
    let primed = stream.event().id.unwrap();
    let filter = json!({ "resourceSubscriptions": uris });
    let witness = client.modern("subscriptions/listen");
    let mut witness = open(&witness.param("notifications", filter));
    let all: serde_json::Map<String, Value> =
        (0..MANY).map(|n| (n.to_string(), json!(1))).collect();
    server.put("many-kept", &json!(all));
    for _ in 0..MANY {
        told(&mut witness);
    }
    // The stream has sent all updates by now, but the session keeps only the latest.
    std::thread::sleep(Duration::from_millis(200));
    drop(stream);
    let mut stream = session.get().header("last-event-id", &primed).open();
    let mut missing: BTreeSet<String> = uris.into_iter().collect();
    while !missing.is_empty() {
        let message = stream.call_message();
        missing.remove(message["params"]["uri"].as_str().unwrap());
    }
}

/// Copies the database with SQLite's `.backup`, to save or restore it.
fn copy(from: &Directory, name: &str, to: &str) {
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(from.join(&format!("{to}{end}")));
    }
    let command = format!(".backup {}", from.join(to).display());
    let mut shell = std::process::Command::new("sqlite3");
    let output = shell.arg(from.join(name)).arg(command).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn who_knows_more_than_a_backup_that_was_put_back_is_told_to_read_again() {
    if !has_sqlite3() {
        return;
    }
    for ends_with_id in [true, false] {
        let home = Directory::new();
        let mut before = server().directory(&home.0).start();
        let uri = "gatewren:///public/kept";
        let old = before.put("kept", &json!("old"));
        // Otherwise the session's first update might be this one.
        wait_until("the server has seen it", IN_TIME, || {
            read(&before, "gatewren:///public") >= old
        });
        copy(&home, "state.db", "backup.db");
        let session = before.client().session("2025-11-25");
        session.subscribe(uri);
        let mut stream = session.get().open();
        assert_eq!(stream.event().data, "");
        before.put("kept", &json!("new"));
        let event = stream.event();
        drop(stream);
        before.signal(Signal::SIGTERM);
        before.ended();
        copy(&home, "backup.db", "state.db");
        drop(before);

        // Further writes: the revision number soon exceeds the one that the client knows.
        let after = server().directory(&home.0).start();
        for n in 0..20 {
            after.put("other", &json!(n));
        }
        let session = session.carried_on_by(&after.client());
        let mut request = session.get();
        if ends_with_id {
            request = request.header("last-event-id", &event.id.unwrap());
        }
        let meta = told(&mut request.open());
        assert_eq!(meta["gatewren/resync"], true, "{meta}");
        assert!(meta[REVISION].as_u64().unwrap() <= read(&after, uri));
    }
}
