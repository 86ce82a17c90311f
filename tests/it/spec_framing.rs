//! Requests that two programs could read differently: rejected, or read as one and the last of their connection.

use crate::support::frames::{self, Outcome};
use crate::support::server::{Server, shared};

/// The request that an attacker tries to smuggle in.
const HIDDEN: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// Returns all responses to a request with these headers and this body.
fn answers(server: &Server, headers: &str, body: &str) -> Vec<String> {
    let token = server.text("token");
    let mut socket = server.client().elsewhere().raw();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\n{headers}\r\n\r\n{body}"
    );
    socket.say(request.as_bytes());
    let heard = socket.all();
    let found = heard.split("HTTP/1.1 ").skip(1);
    found.map(ToOwned::to_owned).collect()
}

/// Returns the statuses of the responses.
fn statuses(server: &Server, headers: &str, body: &str) -> Vec<String> {
    let answers = answers(server, headers, body).into_iter();
    answers.map(|answer| answer[..3].to_owned()).collect()
}

#[test]
fn a_body_whose_end_can_be_read_in_two_ways_is_refused_and_ends_the_connection() {
    let server = shared("observe");
    let refused = [
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked\u{b}",
        "Transfer-Encoding:",
        "Transfer-Encoding : chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "X: y\0\r\nTransfer-Encoding: chunked",
        "X\0: y\r\nTransfer-Encoding: chunked",
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length: 99999999999999999999",
        "Content-Length:",
        "Content-Length : 5",
    ];
    for headers in refused {
        let statuses = statuses(&server, headers, &format!("0\r\n\r\n{HIDDEN}"));
        assert_eq!(statuses, ["400"], "{headers:?}");
    }
}

#[test]
fn a_body_with_a_length_and_chunks_is_the_last_of_its_connection() {
    let server = shared("observe");
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 44\r\nTransfer-Encoding: Chunked",
        "Transfer-Encoding: chunked",
        // A recipient may accept a bare line feed as the end of a line (RFC 9112, 2.2): all parsers here do.
        "X: y\nTransfer-Encoding: chunked",
    ] {
        let found = answers(&server, headers, &format!("0\r\n\r\n{HIDDEN}"));
        assert_eq!(found.len(), 1, "{headers:?}: {found:?}");
        assert!(found[0].starts_with("400"), "no message: {found:?}");
        let lower = found[0].to_ascii_lowercase();
        assert!(lower.contains("connection: close"), "{headers:?}: {lower}");
    }
}

#[test]
fn chunks_that_are_none_are_refused() {
    let server = shared("observe");
    for body in [
        "-1\r\n",
        "0x2\r\n{}\r\n0\r\n\r\n",
        "2\n{}\r\n0\r\n\r\n",
        "2;a\nb\r\n{}\r\n0\r\n\r\n",
        "2\r\n{}0\r\n\r\n",
        "1ffffffffffffffff\r\n{}",
        " 2\r\n{}\r\n0\r\n\r\n",
    ] {
        let framed = format!("{body}{HIDDEN}");
        let statuses = statuses(&server, "Transfer-Encoding: chunked", &framed);
        assert_eq!(statuses, ["400"], "{body:?}");
    }
}

#[test]
fn a_length_that_is_said_twice_alike_is_one() {
    let server = shared("observe");
    let headers = "Content-Length: 2\r\nContent-Length: 2\r\nConnection: close";
    let found = answers(&server, headers, &format!("{{}}{HIDDEN}"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("-32600"),
        "two bytes were read: {found:?}"
    );
}

#[test]
fn old_http_knows_no_chunks_and_needs_a_host() {
    let server = shared("observe");
    for (head, status) in [
        (
            "POST /mcp HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked",
            400,
        ),
        ("GET /health HTTP/1.0", 400),
        ("GET /health HTTP/1.0\r\nHost: localhost", 200),
        ("GET /health HTTP/2.0\r\nHost: localhost", 400),
        ("GET /health\r\nHost: localhost", 400),
    ] {
        let mut socket = server.client().raw();
        socket.say(format!("{head}\r\n\r\n").as_bytes());
        let (found, text) = socket.answer();
        assert_eq!(found, status, "{head:?}: {text}");
    }
}

#[test]
fn the_target_and_the_host_name_the_same_server() {
    let server = shared("observe");
    for (target, host, status) in [
        ("https://localhost/health", "localhost", 200),
        ("https://LOCALHOST/health", "localhost", 200),
        ("https://evil.example/health", "localhost", 400),
        ("https://localhost/health", "evil.example", 400),
        ("https://localhost:1/health", "localhost:2", 400),
        ("https://evil.example/health", "evil.example", 421),
        ("https://localhost@evil.example/health", "localhost", 400),
        ("https://evil@localhost/health", "evil@localhost", 400),
        ("/health", "localhost, evil.example", 400),
        ("/health", "localhost/x", 400),
        ("/health", "localhost#evil.example", 400),
        ("/hea lth", "localhost", 400),
        ("/health\0", "localhost", 400),
        ("health", "localhost", 400),
    ] {
        let mut socket = server.client().raw();
        socket.say(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        let (found, text) = socket.answer();
        assert_eq!(found, status, "{target:?} {host:?}: {text}");
    }
}

/// A header as it is sent.
type Sent = (&'static str, &'static [u8]);

const OURS: Sent = (":authority", b"localhost");

/// The outcome of a valid request with these additional headers.
#[rustfmt::skip]
const FRAMES: &[(&str, &[Sent])] = &[
    ("none", &[OURS]),
    ("none", &[OURS, ("host", b"localhost")]),
    ("none", &[("host", b"localhost")]),
    ("bad_host", &[]),
    ("bad_host", &[OURS, ("host", b"evil.example")]),
    ("bad_host", &[(":authority", b"evil.example"), ("host", b"localhost")]),
    ("bad_host", &[("host", b"localhost"), ("host", b"localhost")]),
    ("unknown_host", &[(":authority", b"evil.example")]),
    ("origin_not_allowed", &[OURS, ("origin", b"https://localhost"), ("origin", b"https://localhost")]),
    ("content_type", &[OURS, ("content-type", b"application/json")]),
    ("agent_required", &[OURS, ("authorization", b"Bearer x")]),
    ("broken", &[OURS, ("transfer-encoding", b"chunked")]),
    ("broken", &[OURS, ("connection", b"close")]),
    ("broken", &[OURS, ("upgrade", b"h2c")]),
    ("broken", &[OURS, ("te", b"gzip")]),
    ("broken", &[OURS, ("content-length", b"3")]),
    ("broken", &[OURS, ("content-length", b"2x")]),
    ("broken", &[OURS, ("x", b"y\r\nhost: evil.example")]),
    ("broken", &[OURS, ("x", b"y\0")]),
    ("broken", &[OURS, ("Host", b"localhost")]),
    ("broken", &[OURS, ("x y", b"z")]),
    ("broken", &[OURS, (":path", b"/health")]),
];

#[test]
fn the_same_holds_for_frames() {
    let server = shared("observe");
    let token = format!("Bearer {}", server.text("token"));
    let good: [(&str, &[u8]); 5] = [
        (":method", b"POST"),
        (":scheme", b"https"),
        (":path", b"/mcp"),
        ("content-type", b"application/json"),
        ("authorization", token.as_bytes()),
    ];
    for (error, headers) in FRAMES {
        let mut socket = server.client().http2().raw();
        // HTTP/2 requires names that begin with a colon to come first.
        let (pseudo, rest): (Vec<Sent>, Vec<Sent>) =
            headers.iter().partition(|(name, _)| *name == ":authority");
        let headers = [&pseudo[..], &good[..], &rest[..]].concat();
        let outcome = frames::send(&mut socket, &headers, b"{}");
        assert_eq!(outcome.error(), *error, "{headers:?}: {outcome:?}");
    }
    let two_paths = [&[OURS], &good[..3], &[(":path", b"/health".as_slice())]].concat();
    let mut socket = server.client().http2().raw();
    assert_eq!(frames::send(&mut socket, &two_paths, b""), Outcome::Broken);
}
