//! One endpoint, two eras: a request's revision and the order of its checks (B of the checklist), stateful verbs (H).

use serde_json::json;

use crate::support::client::Client;
use crate::support::request::Request;
use crate::support::server::shared;

fn ping(client: &Client) -> Request {
    client.post(json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }))
}

#[test]
fn b1_a8_host_origin_and_token_come_before_the_body_and_the_body_before_the_message() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        // One fault fewer each time.
        let bad = client
            .request("POST", "/mcp")
            .body(b"{")
            .host("evil.example");
        let bad = bad
            .header("origin", "https://evil.example")
            .header("authorization", "Bearer x");
        let named = bad.clone().host("localhost");
        let ours = named.clone().without("origin");
        let typed = ours.clone().header("content-type", "application/json");
        let known = typed
            .clone()
            .header("authorization", &format!("Bearer {}", client.token));
        for (request, status) in [
            (bad, 421),
            (named, 403),
            (ours, 415),
            (typed, 401),
            (known, 400),
        ] {
            assert_eq!(request.send().status, status, "{way}");
        }
    }
}

#[test]
fn b4_the_first_fault_decides() {
    let server = shared("observe");
    let client = server.client();
    // All faults at once, then one fewer each time, in the order in which they are checked.
    let all = client
        .call("nothing", json!({}))
        .header("mcp-protocol-version", "2099-12-31")
        .header("mcp-method", "x")
        .header("mcp-name", "y")
        .field("method", json!("no/such"));
    let claim = all.clone().mcp_meta("protocolVersion", json!("2099-01-01"));
    let claim = claim.without_mcp_meta("clientCapabilities");
    let agreed = claim.clone().header("mcp-protocol-version", "2099-01-01");
    let complete = agreed.clone().mcp_meta("clientCapabilities", json!({}));
    let known = complete
        .clone()
        .mcp_meta("protocolVersion", json!("2026-07-28"));
    let bare = known.clone().without("mcp-protocol-version");
    let headed = bare.clone().header("mcp-protocol-version", "2026-07-28");
    let repeated = headed.clone().header("mcp-method", "no/such");
    for (what, request, expected) in [
        ("header and claim differ", claim, (400, -32_020)),
        ("_meta is incomplete", agreed, (400, -32_602)),
        ("the version is not served", complete, (400, -32_022)),
        ("the version's header is missing", bare, (400, -32_020)),
        ("the method's header differs", headed, (400, -32_020)),
        ("there is no such method", repeated, (404, -32_601)),
    ] {
        let answer = request.send();
        assert_eq!(answer.verdict(), expected, "{what}: {answer:?}");
    }
    let named = client.call("nothing", json!({}));
    let renamed = named.clone().header("mcp-name", "y");
    assert_eq!(renamed.send().verdict(), (400, -32_020));
    assert_eq!(named.send().verdict(), (200, -32_602));
}

#[test]
fn b2_b6_initialize_is_a_sessions_unless_it_claims_to_be_of_2026() {
    let server = shared("observe");
    let client = server.client();
    let confused = client.initialize("2026-07-28").send();
    assert_eq!(confused.result()["protocolVersion"], "2025-11-25");
    assert!(confused.header("mcp-session-id").is_some());
    let claiming = client
        .modern("initialize")
        .param("protocolVersion", json!("2025-11-25"));
    assert_eq!(claiming.send().verdict(), (404, -32_601));
    let headed = client
        .initialize("2025-11-25")
        .header("mcp-protocol-version", "2026-07-28");
    assert_eq!(headed.send().verdict(), (400, -32_602));
}

#[test]
fn b9_a_request_that_is_refused_is_given_no_session() {
    let server = shared("observe");
    let client = server.client();
    let stream = |request: Request| request.accept("text/event-stream");
    for request in [
        ping(&client),
        ping(&client).header("mcp-session-id", "junk"),
        ping(&client).header("mcp-protocol-version", "2020-01-01"),
        client.initialize("").param("protocolVersion", json!(7)),
        client
            .initialize("2025-11-25")
            .header("mcp-protocol-version", "1999-01-01"),
        client
            .initialize("2025-11-25")
            .header("mcp-protocol-version", "2026-07-28"),
        client.post(json!([])),
        stream(client.request("GET", "/mcp")),
        stream(
            client
                .request("GET", "/mcp")
                .header("mcp-session-id", "junk"),
        ),
        client
            .request("DELETE", "/mcp")
            .header("mcp-session-id", "junk"),
    ] {
        let answer = request.send();
        assert_eq!(answer.header("mcp-session-id"), None, "{answer:?}");
        assert!(
            (400..500).contains(&answer.status) || answer.verdict().1 != 0,
            "{answer:?}"
        );
    }
}

#[test]
fn b10_a_probe_is_answered_for_every_agent() {
    for policy in ["observe", "suggest", "operate", "admin"] {
        let server = shared(policy);
        for (way, client) in server.clients() {
            let probe = client.modern("server/discover");
            let found = probe.send().result();
            assert_eq!(found["supportedVersions"], json!(["2026-07-28"]), "{way}");
            // A client that guesses a version gets the list of served ones.
            let guess = probe.mcp_meta("protocolVersion", json!("2027-01-01"));
            let answer = guess.header("mcp-protocol-version", "2027-01-01").send();
            assert_eq!(answer.verdict(), (400, -32_022), "{way}");
            let supported = &answer.rpc()["error"]["data"]["supported"];
            assert_eq!(supported, &found["supportedVersions"]);
        }
    }
}

#[test]
fn h2_h3_get_opens_a_sessions_stream_and_delete_ends_the_session() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
            let session = client.session(version);
            let stream = session.get().open();
            assert_eq!(stream.status(), 200, "{way}");
            assert_eq!(stream.head.headers["content-type"], "text/event-stream");
            assert_eq!(session.delete().status, 204);
            assert_eq!(session.delete().status, 404);
            assert_eq!(session.request("ping").send().status, 404);
        }
    }
}

#[test]
fn h12_get_and_delete_are_held_to_the_version_header_too() {
    let server = shared("observe");
    let session = server.client().session("2025-06-18");
    let end = || {
        let request = server.client().request("DELETE", "/mcp");
        request.header("mcp-session-id", &session.id)
    };
    for version in ["2025-01-01", "1", "2025-06-18x"] {
        for request in [session.get(), end()] {
            let answer = request.header("mcp-protocol-version", version).send();
            assert_eq!(answer.verdict(), (400, -32_600), "{version}");
        }
    }
    assert_eq!(
        session.request("ping").send().result(),
        json!({}),
        "it lives"
    );
}
