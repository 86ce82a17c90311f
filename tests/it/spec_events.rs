//! Event streams and their messages (S of the checklist), against the fixtures.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::request::Request;
use crate::support::server::{fixtures, shared_fixtures};

/// Longer than the keepalive interval of a call without output.
const SILENCE: Duration = Duration::from_millis(2_500);

fn able(request: Request) -> Request {
    let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    request.mcp_meta("clientCapabilities", able)
}

fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

#[test]
fn s2_s5_what_comes_before_the_answer_is_of_the_call_and_nothing_comes_after() {
    for client in [
        shared_fixtures().client(),
        shared_fixtures().client().http2(),
    ] {
        let call = client.call("test_tool_with_progress", json!({}));
        let mut stream = call.id(json!("mine")).progress(json!("p-1")).open();
        assert_eq!(stream.head.headers["x-accel-buffering"], "no");
        let mut reported = Vec::new();
        let answer = loop {
            let message = stream.message();
            if message.get("id").is_some() {
                break message;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            assert_eq!(message["params"]["progressToken"], "p-1");
            reported.push(message["params"]["progress"].as_f64().unwrap());
        };
        assert_eq!(answer["id"], "mine");
        assert!(reported.is_sorted_by(|a, b| a < b), "{reported:?}");
        assert_eq!(reported.last(), Some(&100.0));
        stream.ends();
    }
}

#[test]
fn s3_in_2026_a_question_is_a_result_and_never_a_request() {
    let client = shared_fixtures().client();
    for tool in [
        "test_elicitation",
        "test_streaming_elicitation",
        "test_sampling",
    ] {
        let arguments = json!({ "message": "Who?", "prompt": "Why?" });
        let call = able(client.call(tool, arguments)).progress(json!(1));
        let messages = call.accept("text/event-stream").send().messages();
        assert!(!messages.iter().any(is_request), "{tool}: {messages:?}");
        let last = messages.last().unwrap();
        assert_eq!(last["result"]["resultType"], "input_required", "{last}");
    }
}

#[test]
fn s4_in_a_session_a_question_comes_on_the_stream_of_its_call() {
    // A separate server: every session is notified when other tests change the lists.
    let server = fixtures();
    let client = server.client();
    let session = client.session_with("2025-06-18", json!({ "elicitation": {} }));
    let mut beside = session.stream();
    let call = session.call("test_elicitation", json!({ "message": "Who?" }));
    let mut stream = call.id(json!("c")).open();
    let question = stream.message();
    assert!(is_request(&question), "{question}");
    assert_eq!(question["method"], "elicitation/create");
    let answer =
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    assert_eq!(session.post(answer).send().status, 202);
    assert_eq!(stream.message()["id"], "c");
    stream.ends();
    beside.stays_quiet(Duration::from_millis(200));
}

#[test]
fn s7_a_subscription_carries_neither_progress_nor_log_messages() {
    let client = shared_fixtures().client();
    let filter = json!({ "toolsListChanged": true });
    let request = client.modern("subscriptions/listen").progress(json!("p"));
    let request = request.param("notifications", filter);
    let mut stream = request.mcp_meta("logLevel", json!("debug")).open();
    let first = stream.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    for tool in ["test_tool_with_progress", "test_tool_with_logging"] {
        let call = client.call(tool, json!({})).progress(json!("other"));
        call.mcp_meta("logLevel", json!("debug")).send().result();
    }
    // Other tests may change lists, and this stream is notified.
    let begun = std::time::Instant::now();
    while begun.elapsed() < SILENCE {
        if let crate::support::stream::Next::Event(event) = stream.next(SILENCE) {
            let method = event.json()["method"].clone();
            assert_eq!(method, "notifications/tools/list_changed");
        }
    }
}

#[test]
fn s9_h17_j8_a_capability_that_a_tool_misses_is_still_400() {
    let client = shared_fixtures().client();
    let call = client.call("test_missing_capability", json!({}));
    for request in [call.clone(), call.progress(json!(1))] {
        let answer = request.send();
        assert_eq!(answer.verdict(), (400, -32_021), "{answer:?}");
        assert!(!answer.is_stream());
        let needed = &answer.rpc()["error"]["data"]["requiredCapabilities"];
        assert_eq!(needed, &json!({ "sampling": {} }));
    }
}

#[test]
fn s9_h7_what_says_something_first_is_a_stream_and_what_does_not_is_json() {
    let client = shared_fixtures().client();
    let call = client.call("test_tool_with_progress", json!({}));
    assert!(!call.send().is_stream(), "nobody asked to hear");
    assert!(call.progress(json!(1)).send().is_stream());
    let quiet = client
        .call("test_simple_text", json!({}))
        .progress(json!(1));
    assert!(!quiet.send().is_stream());
}
