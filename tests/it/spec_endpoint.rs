//! The layers before MCP: TLS, HTTP, paths, types, sizes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::support::server::shared;

/// The maximum length of a body, `limits.body_limit`.
const BODY_LIMIT: usize = 1 << 20;

#[test]
fn h1_each_version_of_http_and_tls_reaches_the_endpoint() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let answer = client.modern("server/discover").send();
        assert_eq!(answer.verdict(), (200, 0), "{way}");
    }
}

#[test]
fn one_connection_takes_many_requests() {
    let server = shared("observe");
    for client in [server.client(), server.client().http2()] {
        let mut connection = client.connection();
        for id in 0..10 {
            let answer = client
                .modern("tools/list")
                .id(json!(id))
                .send_over(&mut connection);
            assert_eq!(answer.rpc()["id"], id);
        }
    }
}

#[test]
fn plain_http_is_told_to_use_tls() {
    let server = shared("observe");
    let mut socket = TcpStream::connect(server.address()).unwrap();
    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 400 ") && text.contains("https://"),
        "{text}"
    );
}

#[test]
fn well_known_is_a_404_in_json_but_for_mcp() {
    let server = shared("observe");
    let paths = [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/mcp/x",
        "/register",
        "/authorize",
        "/token",
        "/",
        "/mcp/",
        "/MCP",
        "//mcp",
    ];
    for (way, client) in server.clients() {
        for path in paths {
            for verb in ["GET", "POST"] {
                let answer = client.request(verb, path).without("authorization").send();
                assert_eq!(answer.status, 404, "{way}: {verb} {path}");
                assert_eq!(answer.json()["error"], "not_found", "{path}");
            }
        }
        let answer = client
            .request("GET", "/.well-known/mcp")
            .without("authorization")
            .send();
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({ "mcp_endpoint": "/mcp" }))
        );
    }
}

#[test]
fn health_asks_for_no_token_and_takes_no_post() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let answer = client
            .request("GET", "/health")
            .without("authorization")
            .send();
        assert_eq!(
            (answer.status, answer.json()),
            (200, json!({ "status": "ok" })),
            "{way}"
        );
        let answer = client.request("HEAD", "/health").send();
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
        let answer = client.request("POST", "/health").send();
        assert_eq!(answer.status, 405);
        assert!(answer.header("allow").unwrap().contains("GET"));
    }
}

#[test]
fn h5_a_verb_that_mcp_does_not_know_is_405() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        for verb in ["PUT", "PATCH", "HEAD", "TRACE"] {
            let answer = client.request(verb, "/mcp").send();
            assert_eq!(answer.status, 405, "{way}: {verb}");
            assert_eq!(answer.header("allow"), Some("POST, GET, DELETE, OPTIONS"));
        }
    }
}

#[test]
fn h15_a_type_that_is_not_json_is_415() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let request = client.modern("tools/list");
        let refused = [
            request.clone().without("content-type"),
            request.clone().header("content-type", "text/plain"),
            request.clone().header("content-type", "application/jsonp"),
            request
                .clone()
                .header("content-type", "application/x-www-form-urlencoded"),
            request.clone().also("content-type", b"application/json"),
        ];
        for request in refused {
            assert_eq!(request.send().status, 415, "{way}");
        }
        for good in [
            "application/json; charset=utf-8",
            "Application/JSON",
            "application/json ;a=b",
        ] {
            let answer = request.clone().header("content-type", good).send();
            assert_eq!(answer.status, 200, "{way}: {good}");
        }
    }
}

#[test]
fn h15_a_body_of_the_limit_is_read_and_a_byte_more_is_413() {
    let server = shared("observe");
    for (way, client) in server.clients() {
        let mut body = client.modern("tools/list").bytes();
        body.resize(BODY_LIMIT, b' ');
        let request = client.modern("tools/list");
        assert_eq!(request.clone().body(&body).send().status, 200, "{way}");
        body.push(b' ');
        assert_eq!(request.body(&body).send().status, 413, "{way}");
    }
}

#[test]
fn what_is_refused_before_it_was_read_is_read_for_a_while_so_that_the_answer_arrives() {
    let server = shared("observe");
    let client = server.client();
    let refused = client.modern("tools/list").without("authorization");
    for (mebibytes, status) in [(1, 401), (8, 413)] {
        let answer = refused.clone().body(&vec![b' '; mebibytes << 20]).send();
        assert_eq!(answer.status, status, "{mebibytes} MiB");
    }
    // But not forever: a client that sends endlessly is disconnected.
    let mut socket = client.raw();
    let length: u64 = 1 << 40;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    socket.say(head.as_bytes());
    let chunk = vec![b' '; 1 << 20];
    let taken = (0..1024).take_while(|_| socket.say(&chunk)).count();
    assert!(taken < 1024, "a gigabyte was taken");
}

#[test]
fn h15_a_body_that_declares_itself_too_large_is_413_before_it_is_sent() {
    let server = shared("observe");
    let mut socket = server.client().raw();
    socket.say(
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n",
            server.text("token"),
            BODY_LIMIT + 1
        )
        .as_bytes(),
    );
    let (status, text) = socket.answer();
    assert_eq!(status, 413, "{text}");
}

#[test]
fn h15_a_chunked_body_that_grows_too_large_is_413() {
    let server = shared("observe");
    let mut socket = server.client().raw();
    socket.say(
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Authorization: Bearer {}\r\nTransfer-Encoding: chunked\r\n\r\n",
            server.text("token")
        )
        .as_bytes(),
    );
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..=(BODY_LIMIT / 0x10000) {
        socket.say(&chunk);
    }
    let (status, text) = socket.answer();
    assert_eq!(status, 413, "{text}");
}

#[test]
fn two_lengths_and_a_smuggled_body_are_refused() {
    let server = shared("observe");
    let token = server.text("token");
    for framing in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 2x\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
    ] {
        let mut socket = server.client().raw();
        socket.say(
            format!(
                "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                 Authorization: Bearer {token}\r\n{framing}\r\n{{}}"
            )
            .as_bytes(),
        );
        let (status, text) = socket.answer();
        assert_eq!(status, 400, "{framing:?}: {text}");
    }
}

#[test]
fn too_many_or_too_large_headers_are_431() {
    let server = shared("observe");
    for headers in [
        "X: y\r\n".repeat(100),
        format!("X: {}\r\n", "y".repeat(20_000)),
    ] {
        let mut socket = server.client().raw();
        socket.say(format!("GET /health HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes());
        let (status, text) = socket.answer();
        assert_eq!(status, 431, "{text}");
    }
}
