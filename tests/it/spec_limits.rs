//! The limits of an agent's concurrent calls and streams: counted separately, rejected in time, and shown.

use serde_json::{Value, json};

use crate::support::agents::admit;
use crate::support::client::Client;
use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::request::{Request, Running};
use crate::support::server::{Server, server};

fn admin(limits: &str) -> Server {
    let limits = format!("[limits]\n{limits}\n");
    server().policy("admin").settings(&limits).start()
}

/// Returns the arguments of a call that runs until it is killed.
fn endless(marker: &str) -> Value {
    json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S })
}

/// Starts such a call, and waits until it runs.
fn under_way(call: &Request, marker: &str) -> Running {
    let running = call.begin();
    wait_until("it runs", IN_TIME, || !sleeping(marker).is_empty());
    running
}

fn listen(client: &Client) -> Request {
    client
        .modern("subscriptions/listen")
        .param("notifications", json!({}))
}

/// Returns a value from the metrics.
fn counted(server: &Server, name: &str) -> u64 {
    let page = server.client().request("GET", "/metrics").send().body;
    let value = page.lines().find_map(|line| line.strip_prefix(name));
    value.map_or(0, |value| value.trim().parse().unwrap())
}

fn refused_for_calls(call: &Request) {
    let answer = call.send();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.json()["error"], "too_many_calls");
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[test]
fn p7_calls_of_all_agents_have_a_limit_that_other_agents_share() {
    let server = admin("max_calls = 1");
    let other = admit(&server, "other", &["--policy", "admin"]);
    let mark = marker();
    let call = server.client().call("system_shell", endless(&mark));
    let running = under_way(&call, &mark);

    let answer = other
        .call("system_shell", json!({ "command": "true" }))
        .send();
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.json()["error"], "too_many_calls_of_all");
    assert_eq!(answer.header("retry-after"), Some("1"));
    let refusals = "gatewren_refusals_total{reason=\"too_many_calls_of_all\"}";
    assert_eq!(counted(&server, refusals), 1);
    // Calls that only read have slots of their own.
    other.call("whoami", json!({})).send().data();
    drop(running);
    let done = other.call("system_shell", json!({ "command": "true" }));
    wait_until("the slot is free", IN_TIME, || done.send().status == 200);
}

#[test]
fn p7_a_call_too_many_is_503_and_nothing_but_calls_needs_a_place() {
    let server = admin("agent_calls = 2");
    let client = server.client();
    let session = client.session("2025-06-18");
    let (first, second) = (marker(), marker());
    let modern = under_way(&client.call("system_shell", endless(&first)), &first);
    let call = session
        .call("system_shell", endless(&second))
        .id(json!("s"));
    let stateful = under_way(&call, &second);

    let quick = json!({ "command": "true" });
    refused_for_calls(&client.call("system_shell", quick.clone()));
    refused_for_calls(&session.call("system_shell", quick.clone()));
    assert_eq!(counted(&server, "gatewren_calls_open"), 2);
    let refusals = "gatewren_refusals_total{reason=\"too_many_calls\"}";
    assert_eq!(counted(&server, refusals), 2);

    let stream = listen(&client).open();
    assert_eq!((stream.status(), session.get().open().status()), (200, 200));
    assert_eq!(client.modern("server/discover").send().status, 200);
    assert_eq!(session.request("ping").send().result(), json!({}));
    assert_eq!(client.session("2025-11-25").version, "2025-11-25");
    let answer = json!({ "jsonrpc": "2.0", "id": 7, "result": {} });
    assert_eq!(session.post(answer).send().status, 202);

    let cancel = session.notify("notifications/cancelled", &json!({ "requestId": "s" }));
    assert_eq!(cancel.status, 202);
    stateful.finish();
    drop(modern);
    wait_until("both places are free", IN_TIME, || {
        counted(&server, "gatewren_calls_open") == 0
    });
    client.call("system_shell", quick).send().data();
}

#[test]
fn calls_that_only_read_are_counted_apart() {
    let server = admin("agent_calls = 1");
    let client = server.client();
    let session = client.session("2025-11-25");
    let marker = marker();
    let running = under_way(&client.call("system_shell", endless(&marker)), &marker);
    client.call("whoami", json!({})).send().data();
    session.call("whoami", json!({})).send().data();
    drop(running);
}

#[test]
fn a_call_too_many_waits_for_its_turn() {
    let server = admin("agent_calls = 1");
    let client = server.client();
    let session = client.session("2025-11-25");
    let quick = json!({ "command": "echo hi" });
    for waiting in [
        client.call("system_shell", quick.clone()),
        session.call("system_shell", quick.clone()),
    ] {
        let marker = marker();
        let running = under_way(&client.call("system_shell", endless(&marker)), &marker);
        let waiting = waiting.begin();
        drop(running);
        assert_eq!(waiting.finish().data()["stdout"], "hi\n");
    }
}

#[test]
fn p7_a_call_keeps_its_place_when_its_connection_is_lost() {
    let server = admin("agent_calls = 1");
    let session = server.client().session("2025-11-25");
    let marker = marker();
    let call = session.call("system_shell", endless(&marker)).id(json!(5));
    drop(under_way(&call, &marker));
    let quick = || session.call("system_shell", json!({ "command": "true" }));
    refused_for_calls(&quick());
    session.notify("notifications/cancelled", &json!({ "requestId": 5 }));
    wait_until("its place is free", IN_TIME, || {
        quick().send().status == 200
    });
}

#[test]
fn p7_a_batch_needs_a_place_for_each_of_its_calls() {
    let server = admin("agent_calls = 2");
    let session = server.client().session("2025-03-26");
    let marker = marker();
    let call = |id: u32| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "system_shell", "arguments": endless(&marker) } })
    };
    let batch = session.post(json!([call(1), call(2), call(3)]));
    refused_for_calls(&batch);
    assert_eq!(counted(&server, "gatewren_tool_calls_total{"), 0);
    assert_eq!(counted(&server, "gatewren_calls_open"), 0);
    assert!(sleeping(&marker).is_empty(), "none of them ran");
}

#[test]
fn p7_a_batch_is_charged_for_each_of_its_messages() {
    let server = admin("agent_rate = 20");
    let session = server.client().session("2025-03-26");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/nothing" });
    let answer = session.post(json!(vec![note; 30])).send_once();
    assert_eq!(answer.status, 429, "{answer:?}");
    assert!(answer.header("retry-after").is_some());
}

#[test]
fn l9_a_stream_too_many_is_refused_before_anything_is_said_on_it() {
    let server = admin("max_streams_per_agent = 2");
    let client = server.client();
    let session = client.session("2025-11-25");
    let streams = [listen(&client).open(), session.stream()];
    assert_eq!(streams[0].status(), 200);
    for request in [listen(&client), session.get()] {
        let answer = request.send();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.json()["error"], "too_many_streams");
        assert_eq!(answer.header("retry-after"), Some("5"));
        assert!(!answer.is_stream());
    }
    assert_eq!(counted(&server, "gatewren_streams_open"), 2);
    let refusals = "gatewren_refusals_total{reason=\"too_many_streams\"}";
    assert_eq!(counted(&server, refusals), 2);
    client.call("whoami", json!({})).send().data();
    drop(streams);
    wait_until("both places are free", IN_TIME, || {
        listen(&client).open().status() == 200
    });
}
