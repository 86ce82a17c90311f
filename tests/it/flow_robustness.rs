//! Malformed requests and misbehaving clients: none causes an internal error, none keeps others out.

use serde_json::json;

use crate::support::client::Client;
use crate::support::server::server;

/// The number of mutated requests of each kind.
const MUTATIONS: usize = 150;

/// The number of requests from one address that stays below its rate limit.
const PER_ADDRESS: usize = 100;

/// A small, seeded generator with the same numbers on every machine (xorshift64*).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// Changes one to four bytes.
    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let (at, other) = (self.below(bytes.len()), self.below(bytes.len()));
            match self.below(6) {
                0 => bytes[at] = u8::try_from(self.below(256)).unwrap(),
                1 => bytes[at] ^= 1 << self.below(8),
                2 => drop(bytes.remove(at)),
                3 => bytes.insert(at, b"{}[]\",:0\\\n\r \0"[self.below(13)]),
                4 => bytes.swap(at, other),
                _ => {
                    let piece = bytes[at.min(other)..at.max(other)].to_vec();
                    bytes.splice(at..at, piece.into_iter().take(40));
                }
            }
        }
    }
}

fn still_answers(client: &Client) {
    assert_eq!(client.elsewhere().modern("tools/list").send().status, 200);
}

#[test]
fn no_mutated_body_makes_a_5xx() {
    let server = server().policy("admin").start();
    let mut dice = Dice(0x5eed_0001);
    for n in 0..MUTATIONS {
        let client = if n % 2 == 0 {
            server.client()
        } else {
            server.client().http2()
        };
        let request = if n % 3 == 0 {
            client.initialize("2025-11-25")
        } else {
            client.call(
                "changes_since",
                json!({ "revision": 0, "pointer": "/public/ü" }),
            )
        };
        let mut body = request.bytes();
        dice.mutate(&mut body);
        let answer = request.clone().body(&body).send();
        let shown = String::from_utf8_lossy(&body).into_owned();
        assert!(answer.status < 500, "{shown}: {answer:?}");
        assert!(
            matches!(answer.status, 200 | 202 | 400 | 404),
            "{shown}: {answer:?}"
        );
        let code = answer.verdict().1;
        assert_ne!(code, -32_603, "{shown}: {answer:?}");
    }
    still_answers(&server.client());
}

#[test]
fn no_mutated_request_makes_a_5xx() {
    let server = server().policy("admin").start();
    let mut dice = Dice(0x5eed_0002);
    let body = server.client().modern("tools/list").bytes();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: */*\r\n\
         Authorization: Bearer {}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        server.text("token"),
        body.len()
    );
    let mut client = server.client();
    for n in 0..MUTATIONS {
        if n % PER_ADDRESS == 0 {
            client = client.elsewhere();
        }
        let mut request = head.clone().into_bytes();
        dice.mutate(&mut request);
        request.extend_from_slice(&body);
        let shown = String::from_utf8_lossy(&request).into_owned();
        let mut socket = client.raw();
        socket.say(&request);
        socket.hang_up();
        let (status, text) = socket.answer();
        assert!(status < 500, "{shown}\n{text}");
    }
    still_answers(&server.client());
}

#[test]
fn an_address_without_a_token_is_429_in_the_end_and_a_neighbour_with_one_is_not() {
    // One a second is less than the slowest machine sends.
    let limits = "[limits]\naddress_rate = 1\naddress_burst = 20\n";
    let server = server().settings(limits).start();
    let (client, stranger) = (
        server.client().http2(),
        server.client().http2().with_token("gw_x"),
    );
    let mut connection = stranger.connection();
    let request = stranger.modern("tools/list");
    let mut refused = None;
    for _ in 0..600 {
        let answer = request.send_over(&mut connection);
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
        assert_eq!(answer.status, 401);
    }
    let refused = refused.expect("600 requests in a row are too many");
    let after = refused.header("retry-after").unwrap().parse::<u32>();
    assert!(after.unwrap() >= 1);
    still_answers(&client);
}
