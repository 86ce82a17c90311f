//! Access: by which host name, from which origin, with which token.

use std::process::Command;

use serde_json::json;

use crate::support::machine::{IN_TIME, wait_until};
use crate::support::request::Request;
use crate::support::server::{server, shared};

#[test]
fn o5_a_host_that_is_not_ours_is_421() {
    let server = shared("observe");
    let port = server.address().port();
    for (way, client) in server.clients() {
        for host in [
            "evil.example",
            "evil.example:443",
            "127.0.0.1.evil.example",
            "10.255.255.254",
        ] {
            let answer = client.modern("tools/list").host(host).send();
            assert_eq!(answer.status, 421, "{way}: {host}");
            assert!(answer.body.contains("access.allowed_hosts"), "{answer:?}");
        }
        for host in [
            format!("localhost:{port}"),
            "LOCALHOST".to_owned(),
            format!("[::1]:{port}"),
        ] {
            let answer = client.modern("tools/list").host(&host).send();
            assert_eq!(answer.status, 200, "{way}: {host}");
        }
    }
}

#[test]
fn none_or_two_host_headers_are_400() {
    let server = shared("observe");
    for hosts in [
        "",
        "Host: localhost\r\nHost: localhost\r\n",
        "Host: a b\r\n",
        "Host: \r\n",
    ] {
        let mut socket = server.client().raw();
        socket.say(format!("GET /health HTTP/1.1\r\n{hosts}\r\n").as_bytes());
        let (status, text) = socket.answer();
        assert_eq!(status, 400, "{hosts:?}: {text}");
    }
}

#[test]
fn o1_o2_an_origin_that_is_not_ours_is_403() {
    let server = shared("observe");
    let evil = [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "file://",
        "",
    ];
    for (way, client) in server.clients() {
        for origin in evil {
            for verb in ["POST", "GET", "DELETE", "OPTIONS"] {
                let request = client.modern("tools/list").header("origin", origin);
                let request = if verb == "POST" {
                    request
                } else {
                    client.request(verb, "/mcp").header("origin", origin)
                };
                let answer = request.send();
                assert_eq!(answer.status, 403, "{way}: {verb} {origin:?}");
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
    }
    let answer = server
        .client()
        .request("GET", "/health")
        .header("origin", "null")
        .send();
    assert_eq!(answer.status, 403);
}

#[test]
fn o2_two_origins_are_403_although_one_is_ours() {
    let server = shared("observe");
    let request = server
        .client()
        .modern("tools/list")
        .header("origin", "https://localhost");
    assert_eq!(request.send().status, 200);
    assert_eq!(
        request.also("origin", b"https://localhost").send().status,
        403
    );
}

#[test]
fn h5_only_a_page_of_an_allowed_origin_may_read_answers() {
    let server = shared("observe");
    let ours = "https://localhost:3000";
    for (way, client) in server.clients() {
        let request = client.modern("tools/list");
        let answer = request.clone().header("origin", ours).send();
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some(ours),
            "{way}"
        );
        let exposed = answer.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("mcp-session-id"), "{exposed}");
        assert_eq!(answer.header("vary"), Some("origin"));
        assert_eq!(request.send().header("access-control-allow-origin"), None);
    }
}

#[test]
fn h5_a_page_may_read_why_it_was_refused_but_only_when_its_origin_is_allowed() {
    let server = shared("observe");
    let request = server.client().with_token("gw_wrong").modern("tools/list");
    let answer = request.header("origin", "https://localhost").send();
    assert_eq!(answer.status, 401);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("https://localhost")
    );
}

#[test]
fn h5_a_preflight_is_204_and_lists_the_headers_of_mcp_and_the_requested_ones() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let answer = client
            .request("OPTIONS", "/mcp")
            .without("authorization")
            .header("origin", "https://localhost")
            .header("access-control-request-method", "POST")
            .header(
                "access-control-request-headers",
                "mcp-name, Mcp-Param-Region, x-other",
            )
            .send();
        assert_eq!((answer.status, answer.body.as_str()), (204, ""), "{way}");
        let headers = answer.header("access-control-allow-headers").unwrap();
        for name in [
            "authorization",
            "mcp-session-id",
            "last-event-id",
            "mcp-param-region",
            "x-other",
        ] {
            assert!(headers.contains(name), "{headers}");
        }
        let credentials = answer.header("access-control-allow-credentials");
        assert_eq!(credentials, None, "the owner has not listed this origin");
        let plain = client.request("OPTIONS", "/mcp").send();
        assert_eq!(plain.status, 204);
        assert!(plain.header("allow").unwrap().contains("DELETE"));
        assert_eq!(plain.header("access-control-allow-origin"), None);
    }
}

#[test]
fn o4_a1_a5_a6_a8_no_token_a_wrong_one_or_two_are_401_and_name_no_oauth() {
    let server = shared("observe");
    let (path, good) = (
        format!("/mcp?token={}", server.text("token")),
        server.text("token"),
    );
    for (way, client) in server.clients() {
        let request = client.modern("tools/list");
        let mut wrong = good.to_owned();
        wrong.replace_range(10..11, if &good[10..11] == "a" { "b" } else { "a" });
        let refused = [
            request.clone().without("authorization"),
            request.clone().header("authorization", "Bearer"),
            request
                .clone()
                .header("authorization", &format!("Bearer {wrong}")),
            request
                .clone()
                .header("authorization", &format!("Basic {good}")),
            request.clone().header("authorization", good),
            request.clone().also("authorization", b"Bearer x"),
            client
                .request("GET", &path)
                .without("authorization")
                .accept("text/event-stream"),
            client.request("DELETE", "/mcp").without("authorization"),
        ];
        for request in refused {
            let answer = request.send();
            assert_eq!(answer.status, 401, "{way}: {answer:?}");
            let challenge = answer.header("www-authenticate").unwrap();
            assert!(challenge.starts_with("Bearer "), "{challenge}");
            assert!(!challenge.contains("resource_metadata"), "{challenge}");
            assert!(!answer.body.contains(good) && !answer.body.contains(&wrong));
        }
        let answer = request
            .header("authorization", &format!("bearer {good}"))
            .send();
        assert_eq!(answer.status, 200, "the scheme's case is free");
    }
}

#[test]
fn b1_a_strangers_body_is_not_waited_for() {
    let server = shared("observe");
    let mut socket = server.client().raw();
    socket.say(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 1000\r\n\r\n",
    );
    let (status, text) = socket.answer();
    assert_eq!(status, 401, "{text}");
}

#[test]
fn o3_what_is_tried_out_listens_on_loopback() {
    let mut help = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = help.args(["try", "--help"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("127.0.0.1:8443"), "{text}");
}

#[test]
fn o4_every_path_but_health_and_discovery_asks_for_a_token() {
    let server = shared("observe");
    let client = server.client();
    for (verb, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("GET", "/metrics"),
    ] {
        let request = client.request(verb, path).without("authorization");
        let request = request.header("content-type", "application/json");
        assert_eq!(request.send().status, 401, "{verb} {path}");
    }
}

/// An origin that the owner allows.
const CHAT: &str = "https://chat.example";

const CREDENTIALS: &str = "access-control-allow-credentials";

#[test]
fn h5_a_page_of_an_allowed_origin_reads_each_kind_of_answer_and_no_other_page_any() {
    let limits = "[limits]\nmax_streams_per_agent = 1\n";
    let access = "[access]\nallowed_origins = [\"https://chat.example\"]\n";
    let server = server().settings(&format!("{limits}{access}")).start();
    for (way, client) in server.clients() {
        let session = client.initialize("2025-11-25").send();
        let id = session.header("mcp-session-id").unwrap();
        let in_session = |request: Request| request.header("mcp-session-id", id);
        let good = || client.modern("tools/list");
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let filter = json!({ "resourceSubscriptions": [] });
        let listen = client
            .modern("subscriptions/listen")
            .param("notifications", filter);
        // The previous stream may still be closing.
        let mut open = None;
        wait_until("there is a place for a stream", IN_TIME, || {
            let stream = listen.clone().header("origin", CHAT).open();
            let is_open = stream.status() == 200;
            let allowed = stream.head.headers.get("access-control-allow-origin");
            assert_eq!(allowed.unwrap(), CHAT, "{way}: a stream");
            open = is_open.then_some(stream);
            is_open
        });
        let kinds: Vec<(u16, Request)> = vec![
            (200, good()),
            (202, in_session(client.post(note))),
            (204, client.request("OPTIONS", "/mcp")),
            (400, good().body(b"{")),
            (401, good().header("authorization", "Bearer gw_x")),
            (404, client.request("GET", "/nothing")),
            (405, client.request("PUT", "/mcp")),
            (
                406,
                in_session(client.request("GET", "/mcp")).accept("text/plain"),
            ),
            (413, good().padded(1 << 20)),
            (415, good().header("content-type", "text/plain")),
            (503, listen.clone()),
            (200, in_session(client.request("DELETE", "/mcp"))),
        ];
        for (status, request) in kinds {
            for (origin, may) in [(CHAT, true), ("https://evil.example", false)] {
                // The session was deleted by the request before.
                if !may && request.verb_is("DELETE") {
                    continue;
                }
                let answer = request.clone().header("origin", origin).send();
                let expected = if may { status } else { 403 };
                let matches = answer.status == expected || status == 200 && answer.status == 204;
                assert!(matches, "{way}: {status} for {origin}: {answer:?}");
                let allowed = answer.header("access-control-allow-origin");
                assert_eq!(allowed, may.then_some(origin), "{way}: {status}");
                let with_cookie = (may && status != 404).then_some("true");
                assert_eq!(answer.header(CREDENTIALS), with_cookie, "{way}: {status}");
            }
        }
        drop(open);
    }
}
