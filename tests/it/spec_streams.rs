//! Streams of the stateful era, and what a client that loses one gets back (S and Z of the checklist).

use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::barrier::Barrier;
use crate::support::machine::{IN_TIME, LONG_S};
use crate::support::server::{Directory, has_sqlite3, server, shared};
use crate::support::session::Session;
use crate::support::stream::{Event, Next, Stream};

const STATEFUL: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// Time enough for a message to arrive.
const QUIET: Duration = Duration::from_millis(500);

/// A call that runs until the test releases it.
struct Held {
    barrier: Barrier,
    id: i64,
    stream: Stream,
}

impl Held {
    /// Starts the call with a progress token, so that it sends events before its end.
    fn call(session: &Session, id: i64) -> Self {
        let barrier = Barrier::new();
        let command = format!("{}; echo held {id}", barrier.line());
        let request = session.call(
            "system_shell",
            json!({ "command": command, "timeout_s": LONG_S }),
        );
        let stream = request.id(json!(id)).progress(json!(id)).open();
        assert_eq!(stream.status(), 200);
        barrier.until_reached();
        Self {
            barrier,
            id,
            stream,
        }
    }

    fn let_go(&self) {
        self.barrier.open();
    }

    /// Returns whether a message is the response to this call.
    fn is_answered_by(&self, message: &Value) -> bool {
        let said = format!("held {}\n", self.id);
        let text = message["result"]["content"][0]["text"].as_str();
        message["id"] == self.id && text.is_some_and(|text| text.contains(&said))
    }
}

fn resume(session: &Session, last: &str) -> Stream {
    let stream = session.get().header("last-event-id", last).open();
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.head.headers["content-type"], "text/event-stream");
    assert_eq!(stream.head.headers["x-accel-buffering"], "no");
    stream
}

fn event(stream: &mut Stream) -> Event {
    match stream.next(IN_TIME) {
        Next::Event(event) => event,
        other => panic!("an event was due: {other:?}"),
    }
}

/// Returns the messages up to the end of the stream.
fn rest(stream: &mut Stream) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        match stream.next(IN_TIME) {
            Next::Event(event) if event.data.is_empty() => {}
            Next::Event(event) => messages.push(event.json()),
            Next::End => return messages,
            Next::Quiet => panic!("it does not end: {messages:?}"),
        }
    }
}

/// Returns the only response among the messages, which must be the last.
fn answer(messages: &[Value]) -> &Value {
    let answers: Vec<_> = messages.iter().filter(|m| m.get("id").is_some()).collect();
    assert_eq!(answers.len(), 1, "{messages:?}");
    let last = messages.last().unwrap();
    assert_eq!(answers[0], last);
    last
}

fn id(event: &Event) -> &str {
    event.id.as_deref().unwrap()
}

#[test]
fn z7_a_call_whose_stream_is_lost_is_answered_on_the_stream_that_resumes_it() {
    let server = shared("admin");
    for (way, client) in server.clients() {
        for version in STATEFUL {
            let session = client.session(version);
            let mut held = Held::call(&session, 7);
            let first = event(&mut held.stream);
            // The connection is lost, the call continues.
            held.stream = resume(&session, id(&first));
            held.let_go();
            let messages = rest(&mut held.stream);
            let answer = answer(&messages);
            assert!(held.is_answered_by(answer), "{way}, {version}: {answer}");
        }
    }
}

#[test]
fn z7_what_was_said_while_nobody_listened_is_replayed_once_and_in_order() {
    let server = shared("admin");
    let session = server.client().session("2025-11-25");
    let mut held = Held::call(&session, 1);
    let primed = event(&mut held.stream);
    let (first, second) = (event(&mut held.stream), event(&mut held.stream));
    held.let_go();
    let whole: Vec<Value> = [first.json(), second.json()]
        .into_iter()
        .chain(rest(&mut held.stream))
        .collect();
    // An event that was sent may have been lost on the way, so it can be replayed.
    for (last, seen) in [(&primed, 0), (&first, 1), (&second, 2)] {
        let replayed = rest(&mut resume(&session, id(last)));
        assert_eq!(replayed, whole[seen..], "{last:?}");
    }
}

#[test]
fn z7_z5_each_stream_gets_its_own_rest_and_the_sessions_stream_no_answers() {
    let server = shared("admin");
    let session = server.client().session("2025-11-25");
    let mut own = session.stream();
    let mut calls = [1, 2].map(|id| Held::call(&session, id));
    let seen = calls.each_mut().map(|call| event(&mut call.stream));
    for (call, seen) in calls.iter_mut().zip(&seen).rev() {
        call.stream = resume(&session, id(seen));
    }
    for call in &calls {
        call.let_go();
    }
    for call in &mut calls {
        let messages = rest(&mut call.stream);
        assert!(call.is_answered_by(answer(&messages)), "{messages:?}");
    }
    own.stays_quiet(QUIET);
}

#[test]
fn s8_a_stream_that_is_resumed_elsewhere_ends_where_it_was() {
    let server = shared("admin");
    for (way, client) in server.clients() {
        let session = client.session("2025-11-25");
        let mut held = Held::call(&session, 1);
        let primed = event(&mut held.stream);
        let mut new = resume(&session, id(&primed));
        assert!(
            rest(&mut held.stream)
                .iter()
                .all(|message| message.get("id").is_none()),
            "{way}"
        );
        held.let_go();
        assert!(held.is_answered_by(answer(&rest(&mut new))), "{way}");

        let mut old = session.get().open();
        let mut new = resume(&session, id(&event(&mut old)));
        old.ends();
        assert_eq!(event(&mut new).data, "", "{way}: primed");
        new.stays_quiet(QUIET);
    }
}

#[test]
fn z8_z9_a_calls_stream_is_primed_with_a_time_to_come_back_for_clients_of_2025_11_25_alone() {
    let server = shared("admin");
    for version in STATEFUL {
        let session = server.client().session(version);
        let mut held = Held::call(&session, 1);
        let first = event(&mut held.stream);
        let resumed = event(&mut resume(&session, id(&first)));
        if version == "2025-11-25" {
            for event in [&first, &resumed] {
                // Python's and TypeScript's clients try twice, so they outlast a restart of twice this time: 10 s.
                let outlasts = event.retry.is_some_and(|ms| (5_000..8_000).contains(&ms));
                assert!(event.data.is_empty() && outlasts, "{event:?}");
            }
        } else {
            for event in [&first, &resumed] {
                assert_eq!(event.json()["method"], "notifications/progress");
                assert_eq!(event.retry, None, "{version}");
            }
        }
        assert_ne!(first.id, resumed.id, "{version}");
        held.let_go();
    }
}

#[test]
fn a_calls_stream_passes_proxies_and_ends_after_the_answer() {
    let server = shared("admin");
    let client = server.client();
    let barriers = [Barrier::new(), Barrier::new()];
    let [modern, stateful] = barriers
        .each_ref()
        .map(|barrier| json!({ "command": barrier.line(), "timeout_s": LONG_S }));
    let session = client.session("2025-11-25");
    let calls = [
        ("2026-07-28", client.call("system_shell", modern)),
        ("2025-11-25", session.call("system_shell", stateful)),
    ];
    for ((name, request), barrier) in calls.into_iter().zip(&barriers) {
        let mut stream = request.open();
        assert_eq!(stream.head.headers["x-accel-buffering"], "no", "{name}");
        barrier.open();
        let messages = rest(&mut stream);
        assert_eq!(messages.len(), 1, "{name}: {messages:?}");
        assert!(messages[0].get("result").is_some(), "{name}: {messages:?}");
    }
}

#[test]
fn z6_z11_an_id_of_another_session_or_of_nobody_resumes_nothing_and_is_no_error() {
    let server = shared("admin");
    let client = server.client();
    let (session, other) = (client.session("2025-11-25"), client.session("2025-11-25"));
    let mut held = Held::call(&other, 1);
    let theirs = event(&mut held.stream);
    let said = event(&mut held.stream);
    assert_ne!(theirs.id, said.id);
    for last in [id(&theirs), "junk", "", "1.2.3", &"9".repeat(4_000)] {
        let mut stream = resume(&session, last);
        let primed = event(&mut stream);
        assert_eq!(primed.data, "", "{last:?}");
        stream.stays_quiet(QUIET);
    }
    held.let_go();
    let messages = rest(&mut held.stream);
    assert!(held.is_answered_by(answer(&messages)), "it was left alone");
}

#[test]
fn z5_a_call_that_is_over_for_its_client_has_no_stream_to_resume() {
    let server = shared("admin");
    let session = server.client().session("2025-11-25");
    let mut held = Held::call(&session, 1);
    held.let_go();
    let mut last = event(&mut held.stream);
    while let Next::Event(event) = held.stream.next(IN_TIME) {
        last = event;
    }
    assert!(held.is_answered_by(&last.json()));
    let answer = session.get().header("last-event-id", id(&last)).send();
    assert_eq!(
        (answer.status, answer.header("allow")),
        (405, Some("POST, DELETE"))
    );

    let mut cancelled = Held::call(&session, 2);
    let seen = event(&mut cancelled.stream);
    session.notify("notifications/cancelled", &json!({ "requestId": 2 }));
    assert!(
        rest(&mut cancelled.stream)
            .iter()
            .all(|m| m.get("id").is_none())
    );
    // Its earlier progress may be replayed once more.
    let mut resumed = session.get().header("last-event-id", id(&seen)).open();
    match resumed.status() {
        200 => assert!(rest(&mut resumed).iter().all(|m| m.get("id").is_none())),
        status => assert_eq!(status, 405),
    }
}

#[test]
fn z7_a_session_that_ends_ends_the_streams_of_its_calls() {
    let server = shared("admin");
    let session = server.client().session("2025-11-25");
    let mut calls = [1, 2].map(|id| Held::call(&session, id));
    let seen = event(&mut calls[0].stream);
    calls[0].stream = resume(&session, id(&seen));
    assert_eq!(session.delete().status, 204);
    for call in &mut calls {
        assert!(rest(&mut call.stream).iter().all(|m| m.get("id").is_none()));
    }
    let again = session.get().header("last-event-id", id(&seen)).send();
    assert_eq!(again.status, 404);
}

#[test]
fn z7_updates_are_told_again_from_the_log_after_a_restart_and_to_one_stream_alone() {
    if !has_sqlite3() {
        return;
    }
    let home = Directory::new();
    let before = server().directory(&home.0).start();
    let session = before.client().session("2025-11-25");
    session.subscribe("gatewren:///public/a");
    session.subscribe("gatewren:///public/b");
    let mut stream = session.get().open();
    let primed = event(&mut stream);
    before.put("a", &json!(1));
    let told = event(&mut stream);
    assert_eq!(told.json()["params"]["uri"], "gatewren:///public/a");
    before.signal(Signal::SIGKILL);
    drop((stream, before));

    let after = server().directory(&home.0).start();
    after.put("b", &json!(1));
    let session = session.carried_on_by(&after.client());
    // Resumed from before the first update: all updates come again, and a second stream does not get them too.
    let mut first = resume(&session, id(&primed));
    assert_eq!(event(&mut first).data, "");
    let mut told_again = [(); 2].map(|()| {
        let told = event(&mut first).json();
        told["params"]["uri"].as_str().unwrap().to_owned()
    });
    told_again.sort();
    assert_eq!(told_again, ["gatewren:///public/a", "gatewren:///public/b"]);
    let mut second = resume(&session, id(&told));
    assert_eq!(event(&mut second).data, "");
    second.stays_quiet(QUIET);
    first.stays_quiet(QUIET);
}

/// A client of 2025-06-18 gets no id before the first message: until that arrives, it returns with the id from before.
#[test]
fn z7_an_update_that_is_lost_on_the_first_stream_after_a_restart_is_sent_on_the_next() {
    if !has_sqlite3() {
        return;
    }
    for version in STATEFUL {
        let home = Directory::new();
        let before = server().directory(&home.0).start();
        let session = before.client().session(version);
        session.subscribe("gatewren:///public/a");
        session.subscribe("gatewren:///public/b");
        let mut stream = session.stream();
        before.put("a", &json!(1));
        let told = event(&mut stream);
        before.signal(Signal::SIGKILL);
        drop((stream, before));

        let after = server().directory(&home.0).start();
        let session = session.carried_on_by(&after.client());
        after.put("a", &json!(2));
        for _ in 0..3 {
            let mut lost = resume(&session, id(&told));
            after.put("b", &json!(2));
            let mut updated = [(); 2].map(|()| lost.call_message()["params"]["uri"].clone());
            updated.sort_by_key(Value::to_string);
            assert_eq!(updated, ["gatewren:///public/a", "gatewren:///public/b"]);
        }
        let mut other = session.get().open();
        after.put("a", &json!(3));
        assert_eq!(
            other.call_message()["params"]["uri"],
            "gatewren:///public/a"
        );
    }
}

#[test]
fn signs_of_life_can_be_turned_off_and_a_stream_opens_all_the_same() {
    let settings = "[limits]\nheartbeat = \"0s\"\n";
    let server = server().policy("admin").settings(settings).start();
    let client = server.client();
    let barriers = [Barrier::new(), Barrier::new()];
    let [stateful, modern] = barriers
        .each_ref()
        .map(|barrier| json!({ "command": barrier.line(), "timeout_s": LONG_S }));
    let session = client.session("2025-06-18");
    let calls = [
        session.call("system_shell", stateful),
        client.call("system_shell", modern),
    ];
    for (request, barrier) in calls.into_iter().zip(&barriers) {
        let mut stream = request.progress(json!("t")).open();
        assert_eq!(stream.head.headers["content-type"], "text/event-stream");
        // As long as a keepalive would otherwise take.
        stream.stays_quiet(Duration::from_secs(2));
        barrier.open();
        let messages = rest(&mut stream);
        assert_eq!(messages.len(), 1, "{messages:?}");
    }
}

#[cfg(feature = "everything")]
mod of_fixtures {
    use super::*;
    use crate::support::server::{fixtures, shared_fixtures};

    fn session(version: &str) -> Session {
        let client = shared_fixtures().client();
        let able = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
        let initialize = client.initialize(version).param("capabilities", able);
        Session::opened_by(&client, &initialize)
    }

    #[test]
    fn z9_a_call_that_closes_its_stream_is_answered_when_its_client_comes_back() {
        let session = session("2025-11-25");
        let mut stream = session.call("test_reconnection", json!({})).open();
        let primed = event(&mut stream);
        assert!(
            primed.data.is_empty() && primed.retry > Some(0),
            "{primed:?}"
        );
        stream.ends();
        let messages = rest(&mut resume(&session, id(&primed)));
        assert!(answer(&messages)["result"]["content"].is_array());
    }

    #[test]
    fn z10_a_call_does_not_close_the_stream_of_a_client_that_would_not_come_back() {
        for version in ["2025-03-26", "2025-06-18"] {
            let answer = session(version).call("test_reconnection", json!({})).send();
            assert!(answer.result()["content"].is_array(), "{version}");
        }
        let client = shared_fixtures().client();
        let modern = client.call("test_reconnection", json!({}));
        assert!(modern.send().result()["content"].is_array());
        let json_alone = session("2025-11-25").call("test_reconnection", json!({}));
        let json_alone = json_alone.accept("application/json").send();
        assert!(!json_alone.is_stream());
        assert!(json_alone.result()["content"].is_array());
    }

    #[test]
    fn z7_a_question_on_a_stream_that_is_lost_is_asked_again_and_its_answer_counts() {
        for version in ["2025-06-18", "2025-11-25"] {
            let session = session(version);
            let ask = session.call("test_elicitation", json!({ "message": "Who?" }));
            let mut stream = ask.open();
            let mut asked = event(&mut stream);
            let mut before = asked.clone();
            while asked.data.is_empty() {
                before = asked;
                asked = event(&mut stream);
            }
            drop(stream);
            let question = asked.json();
            assert_eq!(question["method"], "elicitation/create");
            // In the older revisions the question is the first event: a client that resumes has seen it.
            let last = if version == "2025-11-25" {
                &before
            } else {
                &asked
            };
            let mut stream = resume(&session, id(last));
            if version == "2025-11-25" {
                assert_eq!(event(&mut stream).data, "");
                assert_eq!(event(&mut stream).json(), question);
            }
            let given =
                json!({ "action": "accept", "content": { "username": "ada", "email": "a@b.c" } });
            let given = json!({ "jsonrpc": "2.0", "id": question["id"], "result": given });
            assert_eq!(session.post(given).send().status, 202);
            let messages = rest(&mut stream);
            let text = answer(&messages).to_string();
            assert!(text.contains("ada"), "{version}: {text}");
        }
    }

    #[test]
    fn z7_s8_changes_of_lists_are_told_again_on_the_stream_that_was_lost_and_on_no_other() {
        // Every session is notified of the lists, so this test has a separate server.
        let server = fixtures();
        let session = server.client().session("2025-11-25");
        let change = |list: &str| {
            let tool = format!("test_trigger_{list}_change");
            session.call(&tool, json!({})).send().result();
        };
        let told = |event: &Event, list: &str| {
            let method = format!("notifications/{list}/list_changed");
            assert_eq!(event.json()["method"], method, "{event:?}");
        };
        let mut stream = session.get().open();
        let primed = event(&mut stream);
        change("tool");
        let seen = event(&mut stream);
        told(&seen, "tools");
        drop(stream);
        change("prompt");
        let mut resumed = resume(&session, id(&primed));
        assert_eq!(event(&mut resumed).data, "");
        let again = event(&mut resumed);
        assert_eq!((again.id, again.data), (seen.id, seen.data));
        told(&event(&mut resumed), "prompts");
        let mut other = session.stream();
        change("resource");
        told(&event(&mut other), "resources");
        resumed.stays_quiet(QUIET);
        other.stays_quiet(QUIET);
    }
}
