//! The stream of a stateful session: notifications of its subscriptions, also for changes while it was closed.

use std::time::Duration;

use serde_json::json;

use crate::support::machine::IN_TIME;
use crate::support::server::{has_sqlite3, shared};
use crate::support::stream::Next;

/// Time enough for a notification to arrive.
const QUIET: Duration = Duration::from_millis(1500);

#[test]
fn h16_a_stream_that_the_client_cannot_read_is_406() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        let session = client.session("2025-11-25");
        for accept in ["application/json", "*/*", ""] {
            let answer = session.get().accept(accept).send();
            assert_eq!(answer.status, 406, "{way}: {accept:?}");
        }
        assert_eq!(session.get().without("accept").send().status, 406, "{way}");
    }
}

#[test]
fn a_stream_is_primed_for_clients_that_understand_it() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut stream = client.session(version).get().open();
            assert_eq!(stream.status(), 200, "{way}");
            let header = |name: &str| stream.head.headers.get(name).unwrap().clone();
            assert_eq!(header("content-type"), "text/event-stream");
            assert_eq!(header("x-accel-buffering"), "no");
            if version == "2025-11-25" {
                let event = stream.event();
                assert!(
                    event.id.is_some() && event.data.is_empty(),
                    "{way}: {event:?}"
                );
            } else {
                stream.stays_quiet(Duration::from_millis(200));
            }
        }
    }
}

#[test]
fn a_change_by_another_program_is_told_on_the_stream() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    for (n, (way, client)) in server.clients().into_iter().enumerate() {
        let key = format!("streamed-{n}");
        let uri = format!("gatewren:///public/{key}");
        for version in ["2025-03-26", "2025-11-25"] {
            let session = client.session(version);
            session.subscribe(&uri);
            let mut stream = session.stream();
            server.put(&key, &json!({ "at": version }));
            assert_eq!(stream.updated(), uri, "{way}: {version}");
            let read = session.request("resources/read").uri(&uri).send().result();
            assert!(
                read["contents"][0]["text"]
                    .as_str()
                    .unwrap()
                    .contains(version)
            );
        }
    }
}

#[test]
fn what_is_subscribed_later_arrives_on_an_open_stream() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let session = server.client().session("2025-06-18");
    let mut stream = session.stream();
    session.subscribe("gatewren:///public/later");
    server.put("later", &json!(1));
    assert_eq!(stream.updated(), "gatewren:///public/later");
}

#[test]
fn what_is_not_subscribed_or_no_longer_is_not_told() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let session = server.client().session("2025-11-25");
    session.subscribe("gatewren:///public/kept");
    session.subscribe("gatewren:///public/dropped");
    let mut stream = session.stream();
    let request = session.request("resources/unsubscribe");
    assert_eq!(
        request.uri("gatewren:///public/dropped").send().result(),
        json!({})
    );
    server.put("dropped", &json!(1));
    server.put("keptx", &json!(1));
    stream.stays_quiet(QUIET);
    server.put("kept", &json!(1));
    assert_eq!(stream.updated(), "gatewren:///public/kept");
}

#[test]
fn a_change_while_no_stream_was_open_is_told_to_the_next_one() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    for (n, (way, client)) in server.clients().into_iter().enumerate() {
        let key = format!("missed-{n}");
        let uri = format!("gatewren:///public/{key}");
        let session = client.session("2025-11-25");
        session.subscribe(&uri);
        let mut stream = session.get().open();
        let primed = stream.event().id.unwrap();
        server.put(&key, &json!(1));
        let told = stream.event();
        drop(stream);
        let told = told.id.unwrap();
        assert_ne!(told, primed);
        // After the latest id there is nothing to resend; after a later change there is one; after the first id there
        // are both.
        let resume = |id: &str| {
            let mut stream = session.get().header("last-event-id", id).open();
            assert_eq!(stream.event().data, "", "{way}: primed");
            stream
        };
        resume(&told).stays_quiet(Duration::from_millis(300));
        server.put(&key, &json!(2));
        assert_eq!(resume(&told).updated(), uri, "{way}");
        assert_eq!(resume(&primed).updated(), uri, "{way}");
        // A foreign id resumes nothing and is not an error.
        assert_eq!(
            session
                .get()
                .header("last-event-id", "junk")
                .open()
                .status(),
            200
        );
    }
}

#[test]
fn what_is_subscribed_twice_is_told_once_and_ends_with_one_unsubscribe() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let session = server.client().session("2025-11-25");
    let uri = "gatewren:///public/again";
    session.subscribe(uri);
    let mut stream = session.stream();
    session.subscribe(uri);
    server.put("again", &json!(1));
    assert_eq!(stream.updated(), uri);
    stream.stays_quiet(QUIET);
    let request = session.request("resources/unsubscribe");
    assert_eq!(request.uri(uri).send().result(), json!({}));
    server.put("again", &json!(2));
    stream.stays_quiet(QUIET);
}

#[test]
fn event_ids_are_never_given_twice_in_a_session() {
    let server = shared("operate");
    let session = server.client().session("2025-11-25");
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..5 {
        ids.push(session.get().open().event().id.unwrap());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[test]
fn of_two_streams_the_newest_carries_and_the_older_takes_over() {
    if !has_sqlite3() {
        return;
    }
    let server = shared("operate");
    let uri = "gatewren:///public/twice";
    let session = server.client().session("2025-11-25");
    session.subscribe(uri);
    let mut old = session.stream();
    let mut new = session.stream();
    server.put("twice", &json!(1));
    assert_eq!(new.updated(), uri);
    old.stays_quiet(QUIET);
    drop(new);
    server.put("twice", &json!(2));
    assert_eq!(old.updated(), uri);
}

#[test]
fn a_session_that_ends_ends_its_streams() {
    let server = shared("operate");
    for (way, client) in server.clients() {
        let session = client.session("2025-11-25");
        let mut streams = [session.stream(), session.stream()];
        assert_eq!(session.delete().status, 204, "{way}");
        for stream in &mut streams {
            assert!(matches!(stream.next(IN_TIME), Next::End), "{way}");
        }
    }
}
