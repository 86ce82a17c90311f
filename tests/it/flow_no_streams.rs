//! `access.streaming = false`: each POST is answered with one JSON object, and nothing is offered that needs a stream.

use serde_json::json;

use crate::support::container::defined;
use crate::support::server::server;

const OFF: &str = "[access]\nstreaming = false\n";

#[test]
fn a_post_is_answered_with_json_and_streams_are_refused() {
    let server = server().policy("operate").settings(OFF).start();
    for (way, client) in server.clients() {
        let session = client.session("2025-11-25");
        for call in [
            client.call("whoami", json!({})),
            session.call("whoami", json!({})),
        ] {
            for accept in [
                "application/json, text/event-stream",
                "text/event-stream",
                "*/*",
            ] {
                // A call with a token for its progress has a stream otherwise.
                let call = call.clone().mcp_meta("progressToken", json!("p"));
                let answer = call.accept(accept).send();
                assert_eq!(answer.status, 200, "{way}: {accept}");
                assert_eq!(answer.header("content-type"), Some("application/json"));
                assert!(answer.data()["policy"].is_string(), "{way}: {accept}");
            }
        }
        let refused = session.get().send();
        assert_eq!(refused.status, 405, "{way}");
        assert_eq!(refused.header("allow"), Some("POST, DELETE"), "{way}");
        let listen = client.modern("subscriptions/listen");
        let refused = listen.param("notifications", json!({})).send();
        assert_eq!(refused.status, 404, "{way}");
        assert_eq!(refused.json()["error"]["code"], -32601, "{way}");
    }
}

#[test]
fn no_capability_is_offered_that_needs_a_stream() {
    let server = server().policy("operate").settings(OFF).start();
    let client = server.client();
    let initialize = client.initialize("2025-11-25").send();
    for result in [
        client.modern("server/discover").send().result(),
        initialize.result(),
    ] {
        let offered = &result["capabilities"];
        assert_eq!(offered["tools"], json!({}), "{offered}");
        assert_eq!(offered["resources"], json!({}), "{offered}");
        assert_eq!(offered.get("logging"), None, "{offered}");
    }
}

#[test]
fn a_question_goes_to_the_owner_where_a_stream_would_ask_the_client() {
    let containers = defined(&["wren"]);
    let path = containers.0.to_str().unwrap();
    let settings = format!("{OFF}[lxc]\nlxcpath = \"{path}\"\n");
    let builder = server().policy("admin").lxcpath(&containers.0);
    let server = builder.settings(&settings).start();
    let client = server.client();
    let able = json!({ "elicitation": {} });
    let target = json!({ "container": "wren" });
    let session = client.session_with("2025-11-25", able.clone());
    let change = session.call("container_stop", target.clone()).send();
    assert_eq!(change.data()["status"], "pending");
    // The stateless revision asks in its answer, which needs no stream.
    let call = client.call("container_stop", target);
    let asked = call.mcp_meta("clientCapabilities", able).send().result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
}

#[test]
fn a_reload_turns_streams_off_and_on() {
    let server = server().policy("operate").settings("").start();
    let client = server.client();
    let session = client.session("2025-11-25");
    server.reload_with(OFF);
    assert_eq!(session.get().send().status, 405);
    server.reload_with("[access]\nstreaming = true\n");
    let mut stream = session.get().open();
    assert_eq!(stream.status(), 200);
    assert!(stream.event().data.is_empty(), "the stream is primed");
}
