//! The order of checks in the stateless era: which request gets which status and code.

use serde_json::json;

use crate::support::client::Client;
use crate::support::request::Request;
use crate::support::server::shared;

/// A name, the request, and the expected status and code; code 0 means no error.
type Row = (&'static str, Request, (u16, i64));

const NO_METHOD: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const HEADERS_DIFFER: i64 = -32_020;
const VERSION_UNKNOWN: i64 = -32_022;

/// Checks each row over each version of HTTP and TLS; errors carry the request's id.
fn hold(rows: fn(&Client) -> Vec<Row>) {
    let server = shared("observe");
    for (way, client) in server.clients() {
        for (what, request, expected) in rows(&client) {
            let answer = request.clone().send();
            assert_eq!(answer.verdict(), expected, "{way}: {what}: {answer:?}");
            assert_eq!(answer.header("mcp-session-id"), None, "{what}");
            if expected.1 != 0 {
                assert_eq!(answer.rpc()["id"], 1, "{what}: {answer:?}");
            }
        }
    }
}

#[test]
#[rustfmt::skip]
fn m1_j4_e6_h11_b2_b4_the_claim_and_the_version_header_must_agree_and_be_served() {
    hold(|client| {
        let list = client.modern("tools/list");
        let at = |header: &str, claim: &str| {
            let request = client.modern("tools/list").header("mcp-protocol-version", header);
            request.mcp_meta("protocolVersion", json!(claim))
        };
        vec![
            ("both", list.clone(), (200, 0)),
            ("no header", list.clone().without("mcp-protocol-version"), (400, HEADERS_DIFFER)),
            (
                "discover without header",
                client.modern("server/discover").without("mcp-protocol-version"),
                (400, HEADERS_DIFFER),
            ),
            ("header without claim", list.clone().without_mcp_meta("protocolVersion"), (400, INVALID_PARAMS)),
            ("header without _meta", list.clone().field("params", json!({})), (400, INVALID_PARAMS)),
            ("header, _meta no object", list.clone().param("_meta", json!(1)), (400, INVALID_PARAMS)),
            (
                "initialize with a header of 2026",
                client.initialize("2025-11-25").id(json!(1)).header("mcp-protocol-version", "2026-07-28"),
                (400, INVALID_PARAMS),
            ),
            ("header 2025, claim 2026", at("2025-11-25", "2026-07-28"), (400, HEADERS_DIFFER)),
            ("header 2026, claim 2025", at("2026-07-28", "2025-11-25"), (400, HEADERS_DIFFER)),
            ("both 2025-11-25", at("2025-11-25", "2025-11-25"), (400, VERSION_UNKNOWN)),
            ("both 2099-01-01", at("2099-01-01", "2099-01-01"), (400, VERSION_UNKNOWN)),
            ("both nonsense", at("nonsense", "nonsense"), (400, VERSION_UNKNOWN)),
            ("claim that is no text", list.clone().mcp_meta("protocolVersion", json!(5)), (400, INVALID_PARAMS)),
            (
                "no capabilities",
                list.clone().without_mcp_meta("clientCapabilities"),
                (400, INVALID_PARAMS),
            ),
            (
                "capabilities that are no object",
                list.clone().mcp_meta("clientCapabilities", json!([])),
                (400, INVALID_PARAMS),
            ),
            ("spaces around the header", list.clone().header("mcp-protocol-version", " 2026-07-28 "), (200, 0)),
            ("two version headers", list.also("mcp-protocol-version", b"2026-07-28"), (400, HEADERS_DIFFER)),
        ]
    });
}

#[test]
fn d2_d3_b8_a_version_that_is_not_served_is_answered_with_those_that_are() {
    let server = shared("observe");
    let client = server.client();
    let request = client
        .modern("tools/list")
        .header("mcp-protocol-version", "2099-01-01");
    let answer = request
        .mcp_meta("protocolVersion", json!("2099-01-01"))
        .send();
    let data = &answer.rpc()["error"]["data"];
    assert_eq!(data["requested"], "2099-01-01");
    let discovered = client.modern("server/discover").send().result();
    assert_eq!(data["supported"], discovered["supportedVersions"]);
    assert_eq!(data["supported"], json!(["2026-07-28"]));
}

#[test]
#[rustfmt::skip]
fn m2_m3_m4_m6_e11_the_headers_must_repeat_the_body() {
    hold(|client| {
        let list = client.modern("tools/list");
        let call = client.call("whoami", json!({}));
        let read = client.modern("resources/read").uri("gatewren:///public");
        let named = |name: &str| call.clone().header("mcp-name", name);
        let moved = |header: &str| call.clone().without(header);
        vec![
            ("no Mcp-Method", list.clone().without("mcp-method"), (400, HEADERS_DIFFER)),
            ("another Mcp-Method", list.clone().header("mcp-method", "tools/call"), (400, HEADERS_DIFFER)),
            ("Mcp-Method in capitals", list.clone().header("mcp-method", "Tools/List"), (400, HEADERS_DIFFER)),
            ("two Mcp-Methods", list.clone().also("mcp-method", b"tools/list"), (400, HEADERS_DIFFER)),
            ("Mcp-Method that is no text", moved("mcp-method").also("mcp-method", b"\xff"), (400, HEADERS_DIFFER)),
            ("an Mcp-Name that nobody asked for", list.header("mcp-name", "x"), (200, 0)),
            ("a call", call.clone(), (200, 0)),
            ("no Mcp-Name", moved("mcp-name"), (400, HEADERS_DIFFER)),
            ("another Mcp-Name", named("state_get"), (400, HEADERS_DIFFER)),
            ("two Mcp-Names", call.clone().also("mcp-name", b"whoami"), (400, HEADERS_DIFFER)),
            ("spaces around", named("  whoami\t"), (200, 0)),
            ("base64", named("=?base64?d2hvYW1p?="), (200, 0)),
            ("base64 of another", named("=?base64?c3RhdGVfZ2V0?="), (400, HEADERS_DIFFER)),
            ("base64 without padding", named("=?base64?d2hvYW1pX?="), (400, HEADERS_DIFFER)),
            ("base64 with a wrong letter", named("=?base64?d2hv*W1p?="), (400, HEADERS_DIFFER)),
            ("base64 of no text", named("=?base64?/w==?="), (400, HEADERS_DIFFER)),
            ("half a marker is literal", named("=?base64?d2hvYW1p"), (400, HEADERS_DIFFER)),
            ("a marker in capitals is literal", named("=?BASE64?d2hvYW1p?="), (400, HEADERS_DIFFER)),
            ("a resource", read.clone(), (200, 0)),
            ("another resource", read.clone().header("mcp-name", "gatewren:///public/x"), (400, HEADERS_DIFFER)),
            ("a resource without name", read.without("mcp-name"), (400, HEADERS_DIFFER)),
        ]
    });
}

#[test]
#[rustfmt::skip]
fn h10_e5_a_method_that_is_not_served_is_404() {
    hold(|client| {
        let methods = [
            "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
            "tasks/result", "nothing", "", "Tools/List", "notifications/initialized",
        ];
        let mut rows: Vec<Row> = Vec::new();
        for method in methods {
            rows.push((method, client.modern(method), (404, NO_METHOD)));
        }
        rows
    });
}

#[test]
fn h17_e7_what_is_found_after_dispatch_is_an_error_with_200() {
    hold(|client| {
        let list = client.modern("tools/list");
        let read = |uri: &str| client.modern("resources/read").uri(uri);
        vec![
            (
                "unknown tool",
                client.call("nothing", json!({})),
                (200, INVALID_PARAMS),
            ),
            (
                "bogus cursor",
                list.clone().param("cursor", json!("bogus")),
                (200, INVALID_PARAMS),
            ),
            (
                "cursor that is no text",
                list.clone().param("cursor", json!(7)),
                (200, INVALID_PARAMS),
            ),
            (
                "unknown resource",
                read("gatewren:///public/nothing/here"),
                (200, INVALID_PARAMS),
            ),
            (
                "a resource that is not public",
                read("gatewren:///private"),
                (200, INVALID_PARAMS),
            ),
            (
                "another scheme",
                read("file:///etc/passwd"),
                (200, INVALID_PARAMS),
            ),
            (
                "arguments that are no object",
                client.call("whoami", json!([])),
                (200, INVALID_PARAMS),
            ),
            (
                "a request state that is not ours",
                client
                    .call("whoami", json!({}))
                    .param("requestState", json!("v1.x.y")),
                (200, INVALID_PARAMS),
            ),
            (
                "listen to nothing",
                client.modern("subscriptions/listen"),
                (200, INVALID_PARAMS),
            ),
        ]
    });
}

#[test]
fn an_unknown_log_level_is_refused_before_dispatch() {
    let server = shared("observe");
    let request = server
        .client()
        .modern("tools/list")
        .mcp_meta("logLevel", json!("loud"));
    assert_eq!(request.send().verdict(), (400, INVALID_PARAMS));
}

#[test]
fn e8_an_unknown_resource_names_its_uri() {
    let server = shared("observe");
    let long = format!("gatewren:///public/{}", "nothing/".repeat(99));
    for uri in ["gatewren:///public/nothing", &long] {
        let answer = server.client().modern("resources/read").uri(uri).send();
        assert_eq!(answer.rpc()["error"]["data"]["uri"], uri);
        assert!(answer.message().chars().count() < 300, "{answer:?}");
    }
}

#[test]
fn h4_a_session_id_and_a_last_event_id_mean_nothing_in_2026() {
    hold(|client| {
        let list = client.modern("tools/list");
        vec![
            (
                "junk session",
                list.clone().header("mcp-session-id", "junk"),
                (200, 0),
            ),
            (
                "junk event id",
                list.header("last-event-id", "9.9.9"),
                (200, 0),
            ),
        ]
    });
}

#[test]
fn h4_b3_get_and_delete_of_2026_are_405() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        for verb in ["GET", "DELETE"] {
            for version in ["2026-07-28", "2027-01-01"] {
                let request = client.request(verb, "/mcp").accept("text/event-stream");
                let answer = request.header("mcp-protocol-version", version).send();
                assert_eq!(answer.status, 405, "{way}: {verb} {version}");
                assert_eq!(answer.header("allow"), Some("POST"));
            }
        }
    }
}

#[test]
fn m5_the_names_of_headers_match_in_any_case() {
    let server = shared("observe");
    let call = server.client().call("whoami", json!({}));
    let body = String::from_utf8(call.bytes()).unwrap();
    for [version, method, name] in [
        ["MCP-PROTOCOL-VERSION", "MCP-METHOD", "MCP-NAME"],
        ["mcp-protocol-version", "mcp-method", "mcp-name"],
        ["mCp-PrOtOcOl-VeRsIoN", "McP-mEtHoD", "Mcp-nAme"],
    ] {
        let mut socket = server.client().raw();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHOST: localhost\r\nCONTENT-type: application/json\r\n\
             AUTHORIZATION: Bearer {}\r\n{version}: \t2026-07-28 \r\n{method}:tools/call\r\n\
             {name}:   whoami \t\r\nContent-Length: {}\r\n\r\n{body}",
            server.text("token"),
            body.len()
        );
        socket.say(request.as_bytes());
        let (status, text) = socket.answer();
        assert_eq!(status, 200, "{text}");
    }
}

#[test]
fn m10_no_argument_of_the_box_is_repeated_in_a_header() {
    let list = shared("admin").client().modern("tools/list").send();
    assert!(list.names("tools").len() > 5);
    assert!(!list.body.contains("x-mcp-header"), "{list:?}");
}
