//! Long calls: keepalives, cancellation as each era does it, and no processes left afterwards.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::barrier::Barrier;
use crate::support::client::Client;
use crate::support::container::Containers;
use crate::support::machine::{
    IN_TIME, LONG_S, holds_within, marked, marker, sleeping, wait_until, with_time_enough,
};
use crate::support::server::{Server, server, shared};

/// Where a command runs: the tool and its further arguments.
type Place = (&'static str, Value);

fn on_host() -> Place {
    ("system_shell", json!({}))
}

/// Returns the host, and a container if possible; they live as long as the last two values.
fn places() -> (Vec<Place>, Server, Option<Containers>) {
    let Some(mut containers) = Containers::new() else {
        return (vec![on_host()], server().policy("admin").start(), None);
    };
    let server = server()
        .policy("admin")
        .lxcpath(containers.lxcpath())
        .start();
    containers.make("alpha");
    containers.tool("lxc-start", "alpha", &["-d"]);
    let inside = ("container_shell", json!({ "container": "alpha" }));
    (vec![on_host(), inside], server, Some(containers))
}

fn arguments(place: &Place, line: &str) -> Value {
    let mut arguments = place.1.clone();
    arguments["command"] = json!(line);
    arguments["timeout_s"] = json!(LONG_S);
    arguments
}

/// Returns a shell line that starts a background child, a process in a new session and a foreground one.
fn stubborn(marker: &str) -> String {
    format!("echo before; sleep {marker} & (setsid sleep {marker} &) ; sleep {marker}")
}

/// Returns whether all three processes run.
fn runs(marker: &str) -> bool {
    sleeping(marker).len() == 3
}

fn until_it_runs(marker: &str) {
    wait_until("all three run", IN_TIME, || runs(marker));
}

fn is_gone(marker: &str) {
    wait_until("all are gone", IN_TIME, || marked(marker).is_empty());
}

/// Asserts that the server still runs commands.
fn goes_on(client: &Client, place: &Place) {
    let answer = client.call(place.0, arguments(place, "echo on")).send();
    assert_eq!(answer.data()["stdout"], "on\n");
}

#[test]
fn p4_s2_s5_a_long_call_shows_that_it_lives_to_a_client_that_takes_events() {
    let server = shared("admin");
    for client in [server.client(), server.client().http2()] {
        let barrier = Barrier::new();
        let line =
            json!({ "command": format!("{}; echo done", barrier.line()), "timeout_s": LONG_S });
        let call = client.call("system_shell", line);
        let mut stream = call.progress(json!("tok")).open();
        assert_eq!(stream.head.headers["content-type"], "text/event-stream");
        let mut beats = 0;
        let last = loop {
            let message = stream.message();
            if message.get("id").is_some() {
                break message;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            assert_eq!(message["params"]["progressToken"], "tok");
            assert!(message["params"]["progress"].is_number());
            beats += 1;
            barrier.open();
        };
        assert!(beats > 0, "{last}");
        assert_eq!(
            last["result"]["structuredContent"]["stdout"], "done\n",
            "{last}"
        );
        stream.ends();
    }
}

#[test]
fn p4_a_long_call_of_a_session_shows_that_it_lives() {
    let server = shared("admin");
    let session = server.client().session("2025-06-18");
    let barrier = Barrier::new();
    let call = session.call(
        "system_shell",
        json!({ "command": barrier.line(), "timeout_s": LONG_S }),
    );
    let mut stream = call.progress(json!(7)).open();
    let mut progress = Vec::new();
    let answer = loop {
        let message = stream.message();
        if message.get("id").is_some() {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], 7);
        progress.push(message["params"]["progress"].as_f64().unwrap());
        if progress.len() == 2 {
            barrier.open();
        }
    };
    assert_eq!(answer["result"]["structuredContent"]["exit_code"], 0);
    assert!(
        progress.len() >= 2 && progress.is_sorted_by(|a, b| a < b),
        "{progress:?}"
    );
}

#[test]
fn p4_a_long_call_without_a_token_reports_nothing_on_the_way() {
    let server = shared("admin");
    let call = server
        .client()
        .call("system_shell", json!({ "command": "sleep 3" }));
    assert_eq!(call.send().messages().len(), 1);
}

#[test]
fn a_long_call_is_one_json_object_for_a_client_that_takes_no_events() {
    let server = shared("admin");
    let call = server
        .client()
        .call("system_shell", json!({ "command": "sleep 3; echo done" }));
    let answer = call.progress(json!(1)).accept("application/json").send();
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.data()["stdout"], "done\n");
}

#[test]
fn a_short_call_with_a_token_is_one_json_object() {
    let server = shared("admin");
    let call = server.client().call("whoami", json!({})).progress(json!(1));
    assert!(!call.send().is_stream());
}

#[test]
fn p5_time_that_is_up_kills_everything_and_returns_what_was_printed() {
    let (places, server, _containers) = places();
    for place in &places {
        let (marker, running) = with_time_enough(Duration::from_secs(2), |time| {
            let marker = marker();
            let mut arguments = arguments(place, &stubborn(&marker));
            arguments["timeout_s"] = json!(time.as_secs());
            let running = server.client().call(place.0, arguments).begin();
            holds_within(time, || runs(&marker)).then_some((marker, running))
        });
        let outcome = running.finish().data();
        assert_eq!(outcome["timed_out"], true, "{outcome}");
        assert_eq!(outcome["stdout"], "before\n");
        assert_eq!(outcome.get("exit_code"), None);
        assert!(
            marked(&marker).is_empty(),
            "the answer comes after the killing"
        );
    }
}

#[test]
fn a_command_that_ends_is_answered_although_its_child_holds_the_pipe() {
    let (places, server, _containers) = places();
    for place in &places {
        let marker = marker();
        let line = format!("(setsid sleep {marker} &) ; echo out; echo err >&2; exit 3");
        let outcome = server
            .client()
            .call(place.0, arguments(place, &line))
            .send()
            .data();
        assert_eq!(outcome["exit_code"], 3);
        assert_eq!(
            (&outcome["stdout"], &outcome["stderr"]),
            (&json!("out\n"), &json!("err\n"))
        );
        assert!(marked(&marker).is_empty());
    }
}

#[test]
fn p1_a_modern_client_that_goes_cancels_its_call() {
    let (places, server, _containers) = places();
    for place in &places {
        for (way, client) in server.clients() {
            let marker = marker();
            let call = client.call(place.0, arguments(place, &stubborn(&marker)));
            let running = call.clone().begin();
            until_it_runs(&marker);
            drop(running);
            is_gone(&marker);
            // The same with an open stream.
            let stream = call.progress(json!(1)).accept("text/event-stream").open();
            until_it_runs(&marker);
            drop(stream);
            is_gone(&marker);
            let _ = way;
        }
        goes_on(&server.client(), place);
    }
}

#[test]
fn p1_a_modern_call_is_cancelled_by_a_reset_and_its_neighbours_are_not() {
    let server = shared("admin");
    let client = server.client().http2();
    let mut connection = client.connection();
    let start = |marker: &str, connection: &mut _| {
        let call = client.call(
            "system_shell",
            json!({ "command": stubborn(marker), "timeout_s": LONG_S }),
        );
        call.accept("text/event-stream").open_over(connection)
    };
    let (first, second) = (marker(), marker());
    let stream = start(&first, &mut connection);
    let other = start(&second, &mut connection);
    until_it_runs(&first);
    until_it_runs(&second);
    drop(stream);
    is_gone(&first);
    assert!(runs(&second));
    drop(other);
    is_gone(&second);
    let answer = client.call("whoami", json!({})).send_over(&mut connection);
    assert_eq!(answer.status, 200);
}

#[test]
fn a_stateful_client_that_goes_without_an_event_id_leaves_no_command_behind() {
    let (places, server, _containers) = places();
    for place in &places {
        let session = server.client().session("2025-11-25");
        let marker = marker();
        let call = session.call(place.0, arguments(place, &stubborn(&marker)));
        let running = call.begin();
        until_it_runs(&marker);
        drop(running);
        // The grace of such a call, and the time for its end.
        std::thread::sleep(Duration::from_secs(11));
        is_gone(&marker);
    }
}

#[test]
fn p2_a_stateful_client_that_goes_does_not_cancel_its_call() {
    let (places, server, _containers) = places();
    for place in &places {
        for client in [server.client(), server.client().http2()] {
            let session = client.session("2025-11-25");
            let marker = marker();
            let call = session
                .call(place.0, arguments(place, &stubborn(&marker)))
                .id(json!("gone"));
            let running = call.begin();
            until_it_runs(&marker);
            drop(running);
            std::thread::sleep(Duration::from_secs(1));
            assert!(runs(&marker), "it goes on");
            let answer = session.notify("notifications/cancelled", &json!({ "requestId": "gone" }));
            assert_eq!(answer.status, 202);
            is_gone(&marker);
        }
    }
}

#[test]
fn p3_a_stateful_call_is_cancelled_by_a_notification_and_by_the_end_of_its_session() {
    let (places, server, _containers) = places();
    for place in &places {
        for by_delete in [false, true] {
            let session = server.client().session("2025-06-18");
            let marker = marker();
            let call = session
                .call(place.0, arguments(place, &stubborn(&marker)))
                .id(json!(77));
            let running = call.begin();
            until_it_runs(&marker);
            for other in [json!("77"), json!(78), json!(null)] {
                session.notify("notifications/cancelled", &json!({ "requestId": other }));
            }
            std::thread::sleep(Duration::from_millis(300));
            assert!(runs(&marker) && !running.is_finished());
            if by_delete {
                assert_eq!(session.delete().status, 204);
            } else {
                session.notify("notifications/cancelled", &json!({ "requestId": 77 }));
            }
            is_gone(&marker);
            let answer = running.finish();
            assert!(
                !answer.body.contains("\"result\""),
                "no answer to what was cancelled: {answer:?}"
            );
        }
        goes_on(&server.client(), place);
    }
}

#[test]
fn p3_one_session_cannot_cancel_the_calls_of_another() {
    let server = shared("admin");
    let (mine, other) = (
        server.client().session("2025-06-18"),
        server.client().session("2025-06-18"),
    );
    let marker = marker();
    let call = mine
        .call(
            "system_shell",
            json!({ "command": stubborn(&marker), "timeout_s": LONG_S }),
        )
        .id(json!(5));
    let running = call.begin();
    until_it_runs(&marker);
    other.notify("notifications/cancelled", &json!({ "requestId": 5 }));
    server
        .client()
        .modern("notifications/cancelled")
        .param("requestId", json!(5))
        .without_id()
        .send();
    assert_eq!(other.delete().status, 204);
    std::thread::sleep(Duration::from_millis(500));
    assert!(runs(&marker) && !running.is_finished());
    mine.delete();
    is_gone(&marker);
}

#[test]
fn long_output_is_cut_in_the_middle_and_strange_bytes_are_replaced() {
    let server = shared("admin");
    let run = |line: &str| {
        let call = server
            .client()
            .call("system_shell", json!({ "command": line }));
        call.send().data()
    };
    let long = json!({ "command": "echo first; yes | head -c 1000000; echo; echo last" });
    let answer = server.client().call("system_shell", long).send();
    let (text, long) = (answer.result()["content"][0]["text"].clone(), answer.data());
    let text = text.as_str().unwrap();
    assert!(
        text.contains("\nfirst\n") && text.trim_end().ends_with("last") && text.len() < 100_000
    );
    // Sent once: as text.
    assert!(long["stdout"].is_null() && long["exit_code"] == 0, "{long}");
    assert_eq!(
        (&long["truncated"], &long["stdout_bytes"]),
        (&json!(true), &json!(1_000_012))
    );
    let strange = run(r"printf '\377\033[31mred'");
    assert_eq!(strange["stdout"], "\u{fffd}\u{1b}[31mred");
    let bytes = json!({ "command": r"printf '\377\000'" });
    let result = server.client().call("system_shell", bytes).send().result();
    assert_eq!(result["content"][1]["resource"]["blob"], "/wA=");
}

#[test]
fn a_container_that_does_not_run_or_exist_is_told_apart() {
    let (places, server, containers) = places();
    if places.len() < 2 {
        return;
    }
    let mut containers = containers.unwrap();
    containers.make("idle");
    let call = |name: &str| {
        let arguments = json!({ "container": name, "command": "true" });
        server
            .client()
            .call("container_shell", arguments)
            .send()
            .failure()
    };
    assert!(call("idle").contains("container_start"), "{}", call("idle"));
    assert!(
        call("nothing").contains("container_list"),
        "{}",
        call("nothing")
    );
}
