//! Five hundred connections that send next to nothing: other clients are served, and each of these connections ends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use crate::support::frames;
use crate::support::machine::{IN_TIME, wait_until};
use crate::support::raw::RawSocket;
use crate::support::server::{Server, server};

/// The beginning of a handshake that announces 512 bytes and sends three.
const HALF_A_HELLO: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01";

const HALF_A_HEAD: &[u8] = b"POST /mcp HTTP/1.1\r\nHost: local";

/// The most additional memory for all of them, in bytes: 64 KiB each, and as much again.
const MOST_MEMORY: u64 = 64 << 20;

/// An idle connection, before or after the TLS handshake.
enum Idler {
    Plain(TcpStream),
    Secure(Box<RawSocket>),
}

impl Idler {
    /// Sends a few bytes; false once the server has disconnected.
    fn say(&mut self, bytes: &[u8]) -> bool {
        match self {
            Self::Plain(socket) => socket.write_all(bytes).is_ok(),
            Self::Secure(socket) => socket.say(bytes),
        }
    }

    /// Waits until the server has disconnected.
    fn ends(&mut self) -> bool {
        match self {
            Self::Plain(socket) => {
                socket.set_read_timeout(Some(IN_TIME)).unwrap();
                let ended = socket.read_to_end(&mut Vec::new());
                ended.err().is_none_or(|cause| !is_time_out(&cause))
            }
            Self::Secure(socket) => socket.ends(),
        }
    }
}

fn is_time_out(cause: &std::io::Error) -> bool {
    matches!(
        cause.kind(),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
    )
}

fn plain(server: &Server, bytes: &[u8]) -> Idler {
    let mut socket = TcpStream::connect(server.address()).unwrap();
    let _ = socket.write_all(bytes);
    Idler::Plain(socket)
}

fn secure(socket: RawSocket, bytes: &[u8]) -> Idler {
    let mut idler = Idler::Secure(Box::new(socket));
    idler.say(bytes);
    idler
}

/// Returns a request with half a body, from a client with a token.
fn half_a_body(server: &Server) -> Vec<u8> {
    let token = server.text("token");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Authorization: Bearer {token}\r\nContent-Length: 1000\r\n\r\n{{\"jsonrpc\""
    );
    head.into_bytes()
}

/// Opens one connection of each kind, `times` times.
fn besiege(server: &Server, times: usize) -> Vec<Idler> {
    let client = server.client();
    let (http1, http2) = (|| client.raw(), || client.clone().http2().raw());
    let half_headers = [frames::preface(), frames::endless_headers(0)].concat();
    let half_a_body = half_a_body(server);
    let round = |_| {
        [
            plain(server, b""),
            plain(server, HALF_A_HELLO),
            plain(server, HALF_A_HELLO),
            secure(http1(), b""),
            secure(http1(), HALF_A_HEAD),
            secure(http1(), HALF_A_HEAD),
            secure(http1(), &half_a_body),
            secure(http2(), b""),
            secure(http2(), &frames::preface()),
            secure(http2(), &half_headers),
        ]
    };
    (0..times).flat_map(round).collect()
}

fn resident(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() * 1024
}

fn connections(server: &Server) -> u64 {
    let page = server.client().request("GET", "/metrics").send().body;
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("gatewren_connections_open "));
    line.unwrap().trim().parse().unwrap()
}

#[test]
#[ignore = "long: 500 silent clients, until their timeouts"]
fn five_hundred_clients_that_say_nothing_keep_nobody_out_and_cost_little() {
    // If another client had to wait for these connections, it would wait longer than the test.
    let patient = "[limits]\nhandshake_timeout = \"1m\"\nheader_timeout = \"5m\"\n";
    let server = server().policy("admin").settings(patient).start();
    assert_eq!(connections(&server), 1);
    let before = resident(&server);
    let idlers = besiege(&server, 50);
    for (way, client) in server.clients() {
        assert_eq!(client.modern("tools/list").send().status, 200, "{way}");
    }
    let more = resident(&server).saturating_sub(before);
    assert!(more < MOST_MEMORY, "{more} bytes for {}", idlers.len());
}

#[test]
#[ignore = "long: 500 silent clients, until their timeouts"]
fn five_hundred_clients_that_say_nothing_are_hung_up_on() {
    let hasty =
        "[limits]\nhandshake_timeout = \"5s\"\nheader_timeout = \"5s\"\nbody_timeout = \"5s\"\n";
    let server = server().policy("admin").settings(hasty).start();
    for (at, mut idler) in besiege(&server, 50).into_iter().enumerate() {
        assert!(idler.ends(), "the one of kind {} is still open", at % 10);
    }
    wait_until("all are gone", IN_TIME, || connections(&server) == 1);
}

#[test]
#[ignore = "long: 500 silent clients, until their timeouts"]
fn a_byte_now_and_then_gains_no_time() {
    const NOW_AND_THEN: Duration = Duration::from_millis(200);
    let hasty =
        "[limits]\nhandshake_timeout = \"2s\"\nheader_timeout = \"2s\"\nbody_timeout = \"2s\"\n";
    let server = server().settings(hasty).start();
    thread::scope(|scope| {
        for (at, mut idler) in besiege(&server, 2).into_iter().enumerate() {
            scope.spawn(move || {
                let drops = (0..).take_while(|_| {
                    thread::sleep(NOW_AND_THEN);
                    idler.say(b" ")
                });
                let most = IN_TIME.as_millis() / NOW_AND_THEN.as_millis();
                let drops = drops.take(usize::try_from(most).unwrap()).count();
                assert!(drops < usize::try_from(most).unwrap(), "kind {}", at % 10);
            });
        }
    });
}

#[test]
#[ignore = "long: 500 silent clients, until their timeouts"]
fn a_connection_that_rests_between_requests_is_ended() {
    let server = server()
        .settings("[limits]\nheader_timeout = \"1s\"\n")
        .start();
    for client in [server.client(), server.client().http2()] {
        let mut connection = client.connection();
        // On a slow machine it may be idle too long before the first request.
        if let Ok(stream) = client.modern("tools/list").try_open_over(&mut connection) {
            assert_eq!(stream.status(), 200);
            drop(stream);
        }
        wait_until("it is closed", IN_TIME, || connection.is_closed());
    }
}
