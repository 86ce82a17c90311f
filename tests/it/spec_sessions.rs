//! Sessions as the specification and long-lived clients need them: across kills, restarts and expiry.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nix::sys::signal::Signal;
use ring::hmac;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::command::add_agent;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::server::{Directory, Server, server, shared};
use crate::support::session::Session;

fn kill(mut server: Server) {
    server.signal(Signal::SIGKILL);
    server.ended();
}

/// Changes the state as another program would, also while no server runs.
fn change_meanwhile(home: &Directory, key: &str) {
    let patch = json!([{ "op": "add", "path": format!("/public/{key}"), "value": "meanwhile" }]);
    let added = Connection::open(home.join("state.db")).unwrap().execute(
        "INSERT INTO revision (id, at_ms, actor, patch) VALUES
         (1 + max((SELECT coalesce(max(id), 0) FROM revision), (SELECT max(revision) FROM snapshot)),
          unixepoch() * 1000, 'local:test', ?1)",
        [patch.to_string()],
    );
    assert_eq!(added, Ok(1));
}

fn vault(home: &Directory) -> Connection {
    Connection::open(home.join("vault.db")).unwrap()
}

/// Returns the number of sessions in the vault.
fn rows(home: &Directory) -> u32 {
    let count = "SELECT count(*) FROM session";
    let count = vault(home).query_row(count, [], |row| row.get(0));
    count.unwrap()
}

fn used_ms(home: &Directory) -> i64 {
    let last = "SELECT max(used_ms) FROM session";
    vault(home).query_row(last, [], |row| row.get(0)).unwrap()
}

/// Moves the last use of every session in the vault this far into the past.
fn used_before(home: &Directory, age: Duration) {
    let set = "UPDATE session SET used_ms = unixepoch() * 1000 - ?1";
    let changed = vault(home).execute(set, [i64::try_from(age.as_millis()).unwrap()]);
    assert_eq!(changed, Ok(1));
}

fn uri(key: &str) -> String {
    format!("gatewren:///public/{key}")
}

fn status(session: &Session) -> u16 {
    session.request("ping").send().status
}

#[test]
fn z1_a_sessions_id_is_visible_ascii_and_no_other_has_it() {
    let server = shared("operate");
    let client = server.client();
    let mut ids: Vec<String> = (0..20).map(|_| client.session("2025-11-25").id).collect();
    for id in &ids {
        assert!(id.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{id}");
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20);
}

#[test]
fn z12_a_client_hears_after_a_kill_what_changed_meanwhile_and_what_changes_later() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let client = before.client();
    let (resuming, silent) = (client.session("2025-11-25"), client.session("2025-06-18"));
    // In alphabetical order, the update that must not be sent again would come first.
    for key in ["a-told", "b-meanwhile", "c-later"] {
        resuming.subscribe(&uri(key));
    }
    silent.subscribe(&uri("b-meanwhile"));
    silent.subscribe(&uri("c-later"));
    let mut stream = resuming.get().open();
    assert_eq!(stream.event().data, "", "primed");
    change_meanwhile(&home, "a-told");
    let told = stream.event();
    assert_eq!(told.json()["params"]["uri"], uri("a-told"));
    kill(before);
    change_meanwhile(&home, "b-meanwhile");

    let after = server().directory(&home.0).start();
    let client = after.client();
    let resuming = resuming.carried_on_by(&client);
    let last = told.id.unwrap();
    let mut resumed = resuming.get().header("last-event-id", &last).open();
    assert_eq!(resumed.event().data, "", "primed");
    let mut opened = silent.carried_on_by(&client).stream();
    for stream in [&mut resumed, &mut opened] {
        assert_eq!(
            stream.message_within(IN_TIME)["params"]["uri"],
            uri("b-meanwhile")
        );
    }
    change_meanwhile(&home, "c-later");
    for stream in [&mut resumed, &mut opened] {
        assert_eq!(
            stream.message_within(IN_TIME)["params"]["uri"],
            uri("c-later")
        );
    }
    let read = resuming.request("resources/read").uri(&uri("b-meanwhile"));
    assert!(read.send().body.contains("meanwhile"));
}

#[test]
fn z12_what_was_unsubscribed_stays_so_after_a_kill() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let session = before.client().session("2025-11-25");
    for key in ["a-dropped", "b-kept"] {
        session.subscribe(&uri(key));
    }
    let dropped = session.request("resources/unsubscribe");
    assert_eq!(dropped.uri(&uri("a-dropped")).send().result(), json!({}));
    kill(before);
    change_meanwhile(&home, "a-dropped");
    change_meanwhile(&home, "b-kept");
    let after = server().directory(&home.0).start();
    let mut stream = session.carried_on_by(&after.client()).stream();
    assert_eq!(
        stream.message_within(IN_TIME)["params"]["uri"],
        uri("b-kept")
    );
}

#[test]
fn z12_calls_go_on_after_a_kill_in_the_revision_that_was_settled_on() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let client = before.client();
    let sessions: Vec<Session> = ["2025-03-26", "2025-06-18", "2025-11-25"]
        .map(|version| client.session(version))
        .into();
    kill(before);
    let after = server().directory(&home.0).start();
    for (way, client) in after.clients() {
        for session in &sessions {
            let session = session.carried_on_by(&client);
            let answer = session.call("whoami", json!({})).send();
            assert_eq!(answer.verdict(), (200, 0), "{way}: {}", session.version);
            let ping = json!({ "jsonrpc": "2.0", "id": "b", "method": "ping" });
            let batch = session.post(json!([ping])).send().status;
            let expected = if session.version == "2025-03-26" {
                200
            } else {
                400
            };
            assert_eq!(batch, expected, "{way}: {}", session.version);
        }
    }
}

#[test]
fn z3_a_deleted_session_is_404_also_after_a_kill_and_initialize_makes_a_new_one() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let session = before.client().session("2025-11-25");
    session.subscribe(&uri("anything"));
    assert_eq!(session.delete().status, 204);
    assert_eq!(rows(&home), 0);
    kill(before);
    let after = server().directory(&home.0).start();
    let session = session.carried_on_by(&after.client());
    assert_eq!(status(&session), 404);
    assert_eq!(session.get().send().status, 404);
    assert_eq!(session.delete().status, 404);
    let again = session.client.initialize("2025-11-25");
    let again = again.header("mcp-session-id", &session.id).send();
    assert_eq!(again.verdict(), (200, 0));
    assert_ne!(again.header("mcp-session-id"), Some(&*session.id));
}

#[test]
fn z3_another_agents_session_is_404_also_after_a_kill_and_stays_its_owners() {
    let home = Directory::new();
    let owners = server().policy("observe").directory(&home.0).start();
    let session = owners.client().session("2025-11-25");
    kill(owners);
    let others = server().policy("operate").directory(&home.0).start();
    let stolen = session.carried_on_by(&others.client());
    for answer in [
        stolen.request("ping").send(),
        stolen.get().send(),
        stolen.delete(),
    ] {
        assert_eq!(answer.status, 404, "{answer:?}");
        assert!(
            answer.body.contains("unknown or ended session"),
            "{answer:?}"
        );
    }
    kill(others);
    let owners = server().policy("observe").directory(&home.0).start();
    assert_eq!(status(&session.carried_on_by(&owners.client())), 200);
}

#[test]
fn z4_initialize_with_a_live_session_makes_another_and_leaves_it_alone() {
    let server = shared("operate");
    let client = server.client();
    let session = client.session("2025-11-25");
    let request = client.initialize("2025-11-25");
    let again = request.header("mcp-session-id", &session.id).send();
    assert_ne!(again.header("mcp-session-id"), Some(&*session.id));
    assert_eq!(status(&session), 200);
}

#[test]
fn z4_a_session_that_rests_too_long_is_404_and_forgotten() {
    let home = Directory::new();
    let limits = "[limits]\nsession_idle = \"1s\"\n";
    let server = server().directory(&home.0).settings(limits).start();
    let opened = server.client().initialize("2025-11-25").send();
    let id = opened.header("mcp-session-id").unwrap();
    wait_until("it is forgotten", IN_TIME, || rows(&home) == 0);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let ping = server.client().post(ping).header("mcp-session-id", id);
    assert_eq!(ping.send().verdict(), (404, -32_600));
}

#[test]
fn z12_the_time_of_the_last_use_outlives_a_kill() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let session = before.client().session("2025-11-25");
    kill(before);
    // The limit is half an hour, and up to a minute of use may not have been stored.
    used_before(&home, Duration::from_mins(25));
    let rested = server().directory(&home.0).start();
    assert_eq!(status(&session.carried_on_by(&rested.client())), 200);
    kill(rested);
    used_before(&home, Duration::from_mins(35));
    let over = server().directory(&home.0).start();
    assert_eq!(status(&session.carried_on_by(&over.client())), 404);
}

#[test]
fn z12_a_stop_writes_down_the_last_use() {
    let home = Directory::new();
    let mut server = server().directory(&home.0).start();
    let session = server.client().session("2025-11-25");
    let begun = used_ms(&home);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(status(&session), 200);
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().code(), Some(0));
    assert!(used_ms(&home) > begun);
}

#[test]
fn z4_a_session_that_was_never_used_is_forgotten_sooner() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let used = before.client().session("2025-11-25");
    kill(before);
    let limits = "[limits]\nsession_unused = \"1s\"\n";
    let server = server().directory(&home.0).settings(limits).start();
    let used = used.carried_on_by(&server.client());
    assert_eq!(status(&used), 200);
    for _ in 0..5 {
        let opened = server.client().initialize("2025-11-25").send();
        assert_eq!(opened.verdict(), (200, 0));
    }
    wait_until("they are forgotten", IN_TIME, || rows(&home) == 1);
    assert_eq!(status(&used), 200);
}

#[test]
fn z4_at_the_bound_the_longest_rested_session_makes_room_and_one_in_use_never_does() {
    let limits = "[limits]\nmax_sessions_per_agent = 2\n";
    let server = server().settings(limits).start();
    let client = server.client();
    let (first, second) = (client.session("2025-11-25"), client.session("2025-11-25"));
    assert_eq!(status(&first), 200);
    let third = client.session("2025-11-25");
    assert_eq!(status(&second), 404);
    assert_eq!((status(&first), status(&third)), (200, 200));
    let _streams = [first.stream(), third.stream()];
    let refused = client.initialize("2025-11-25").send();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("too_many_sessions"), "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("5"));
    assert_eq!(first.delete().status, 204);
    client.session("2025-11-25");
}

#[test]
fn z12_an_id_that_a_newer_server_signed_is_404_and_nothing_breaks() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let mut session = server.client().session("2025-11-25");
    let key: [u8; 32] = vault(&home)
        .query_row("SELECT bytes FROM key WHERE name = 'session'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let sign = |said: &[u8]| {
        let body = URL_SAFE_NO_PAD.encode(said);
        let tag = hmac::sign(&key, body.as_bytes());
        format!("{body}.{}", URL_SAFE_NO_PAD.encode(tag))
    };
    let (body, _) = session.id.split_once('.').unwrap();
    let said = URL_SAFE_NO_PAD.decode(body).unwrap();
    assert_eq!(sign(&said), session.id, "signed as the server signs");
    let mut newer: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(newer["f"], 1);
    newer["f"] = json!(2);
    let good = session.id.clone();
    for strange in [
        newer.to_string(),
        json!({ "f": 9, "session": { "of": "a kind" } }).to_string(),
        json!({ "f": 1 }).to_string(),
        "no JSON".to_owned(),
    ] {
        session.id = sign(strange.as_bytes());
        assert_eq!(status(&session), 404, "{strange}");
        assert_eq!(session.get().send().status, 404, "{strange}");
        assert_eq!(session.delete().status, 404, "{strange}");
    }
    session.id = good;
    assert_eq!(status(&session), 200);
}

/// Returns the sessions in `session_list`, including the caller's own.
fn listed(session: &Session) -> Vec<Value> {
    let answer = session.call("session_list", json!({})).send();
    let data = answer.result()["structuredContent"].clone();
    data["sessions"].as_array().unwrap().clone()
}

fn names(sessions: &[Value]) -> Vec<&str> {
    let names = sessions.iter().map(|one| one["session"].as_str().unwrap());
    names.collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one scenario, in order")]
fn an_agent_ends_sessions_of_its_own_and_their_names_let_nobody_in() {
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let client = before.client();
    let (mine, left) = (client.session("2025-11-25"), client.session("2025-06-18"));
    let said = add_agent(&home.0, "other", &["--policy", "operate"]);
    let other = client
        .elsewhere()
        .with_token(said["token"].as_str().unwrap());
    wait_until("it comes in", IN_TIME, || {
        other.modern("tools/list").send().status == 200
    });
    let theirs = other.session("2025-11-25");

    let seen = listed(&mine);
    assert_eq!(seen.len(), 2, "{seen:?}");
    let current: Vec<_> = seen.iter().filter(|one| one["current"] == true).collect();
    assert_eq!(current.len(), 1);
    assert_eq!(
        (&current[0]["in_use"], &current[0]["revision"]),
        (&json!(true), &json!("2025-11-25"))
    );
    let rest: Vec<_> = seen.iter().filter(|one| one["current"] == false).collect();
    assert_eq!(rest[0]["revision"], "2025-06-18");
    let left_name = rest[0]["session"].as_str().unwrap();
    let others = listed(&theirs);
    let [their_name] = names(&others)[..] else {
        panic!("{others:?}")
    };

    // A name is not an id: it gives no access, neither to its own agent nor to another.
    for (client, name) in [
        (&client, left_name),
        (&other, left_name),
        (&client, their_name),
    ] {
        let taken = client
            .request("POST", "/mcp")
            .header("mcp-session-id", name);
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        let taken = taken
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(ping.to_string().as_bytes());
        assert_eq!(taken.send().status, 404, "{name}");
    }
    let ending = json!({ "sessions": [their_name, left_name] });
    let refused = json!({ "sessions": [current[0]["session"], left_name] });
    let refused = mine.call("session_kill", refused).send().result();
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(status(&left), 200);
    let ended = mine.call("session_kill", ending).send().result();
    let ended = &ended["structuredContent"];
    assert_eq!(ended["ended"], json!([left_name]));
    assert_eq!(ended["not_found"], json!([their_name]));
    assert_eq!(
        (status(&left), status(&mine), status(&theirs)),
        (404, 200, 200)
    );
    assert_eq!(
        names(&listed(&mine)),
        [current[0]["session"].as_str().unwrap()]
    );
    wait_until("it is gone for good", IN_TIME, || rows(&home) == 2);

    // A session that was not used since a restart is listed too, and a client without a session can end it.
    kill(before);
    let after = server().directory(&home.0).start();
    let client = after.client();
    let asleep = client.call("session_list", json!({})).send().data()["sessions"].clone();
    assert_eq!(asleep[0]["current"], false);
    assert!(asleep[0]["idle_s"].is_u64() && asleep[0].get("revision").is_none());
    let ending = json!({ "ids": [asleep[0]["session"]] });
    let ended = client.call("auth.session.kill", ending).send().data();
    assert_eq!(ended["ended"], json!([asleep[0]["session"]]));
    assert_eq!(rows(&home), 1);
}
