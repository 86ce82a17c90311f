//! Edge cases of cancellation, progress and ping (P of the checklist).
//!
//! `flow_calls` tests their effect on running commands.

use serde_json::{Value, json};

use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::server::shared;

#[test]
fn p3_a_cancellation_tells_nothing_of_what_it_meant() {
    let server = shared("admin");
    let (mine, other) = (
        server.client().session("2025-06-18"),
        server.client().session("2025-11-25"),
    );
    let marker = marker();
    let line = json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S });
    let running = mine.call("system_shell", line).id(json!("mine")).begin();
    wait_until("it runs", IN_TIME, || !sleeping(&marker).is_empty());
    let ended = other.request("ping").id(json!("ended"));
    assert_eq!(ended.send().result(), json!({}));
    let malformed = [json!(null), json!({}), json!([]), json!(1.5)];
    let ids = ["mine", "ended", "never"].map(|id| json!(id));
    for id in ids.into_iter().chain(malformed) {
        let answer = other.notify("notifications/cancelled", &json!({ "requestId": id }));
        let heard = (answer.status, answer.body.as_str(), answer.headers.len());
        assert_eq!((heard.0, heard.1), (202, ""), "{id}");
        let without = other.notify("notifications/cancelled", &json!({}));
        assert_eq!(
            heard,
            (without.status, without.body.as_str(), without.headers.len())
        );
    }
    assert!(
        !sleeping(&marker).is_empty() && !running.is_finished(),
        "it was another's"
    );
    mine.notify(
        "notifications/cancelled",
        &json!({ "requestId": "mine", "reason": "enough" }),
    );
    let answer = running.finish();
    assert!(!answer.body.contains("\"result\""), "{answer:?}");
    wait_until("it is gone", IN_TIME, || sleeping(&marker).is_empty());
}

#[test]
fn p3_initialize_cannot_be_cancelled() {
    let server = shared("observe");
    let session = server.client().session("2025-06-18");
    let answer = session.notify("notifications/cancelled", &json!({ "requestId": 0 }));
    assert_eq!(answer.status, 202);
    assert_eq!(session.request("ping").send().result(), json!({}));
}

#[test]
fn p4_a_progress_token_is_a_text_or_an_integer() {
    let server = shared("observe");
    let client = server.client();
    let session = client.session("2025-11-25");
    let long = "x".repeat(2_000);
    let bad = [
        json!(null),
        json!({}),
        json!([1]),
        json!(1.5),
        json!(true),
        json!(long),
    ];
    for token in bad {
        let modern = client.call("whoami", json!({})).progress(token.clone());
        assert_eq!(modern.send().verdict(), (400, -32_602), "{token}");
        let stateful = session.call("whoami", json!({})).progress(token.clone());
        assert_eq!(stateful.send().verdict(), (200, -32_602), "{token}");
    }
    for token in [json!(""), json!("t"), json!(0), json!(-1), json!(u64::MAX)] {
        let modern = client.call("whoami", json!({})).progress(token.clone());
        assert_eq!(modern.send().verdict(), (200, 0), "{token}");
    }
}

#[test]
fn p6_ping_is_answered_before_the_client_says_that_it_is_ready() {
    let server = shared("observe");
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = server.client();
        let opened = client.initialize(version).send();
        let ping: Value = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
        let id = opened.header("mcp-session-id").unwrap();
        let answer = client.post(ping).header("mcp-session-id", id).send();
        assert_eq!(answer.result(), json!({}), "{version}");
        assert_eq!(answer.rpc()["id"], "p");
    }
}
