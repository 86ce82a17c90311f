//! The guard's chain: what each check rejects, with which error, and the order of the checks.

use serde_json::{Value, json};

use crate::support::answer::Answer;
use crate::support::client::Client;
use crate::support::request::Request;
use crate::support::server::{Server, server};

/// A text that must not occur in any response or in the log.
const HUSH: &str = "hush-5c1e";

/// A check, a change to the request that fails it, and the expected error.
struct Link {
    name: &'static str,
    spoil: fn(Request) -> Request,
    status: u16,
    error: &'static str,
}

const fn link(
    name: &'static str,
    spoil: fn(Request) -> Request,
    status: u16,
    error: &'static str,
) -> Link {
    Link {
        name,
        spoil,
        status,
        error,
    }
}

/// The checks that depend on one request only, in order. The last ones are MCP's, with the error's code.
#[rustfmt::skip]
const LINKS: &[Link] = &[
    link("host",    |r| r.host("evil.example"),                         421, "unknown_host"),
    link("origin",  |r| r.header("origin", "https://evil.example"),     403, "origin_not_allowed"),
    link("path",    |r| r.path(&format!("/{HUSH}?{HUSH}")),             404, "not_found"),
    link("method",  |r| r.verb("PUT"),                                  405, "method_not_allowed"),
    link("type",    |r| r.header("content-type", "text/plain"),         415, "content_type"),
    link("length",  |r| r.padded(1 << 20),                              413, "body_too_large"),
    link("token",   |r| r.header("authorization", "Bearer gw_hush-5c1e"), 401, "agent_required"),
    link("header",  |r| r.without("x-gate"),                            403, "header_required"),
    link("JSON",    |r| r.body(b"{\"a\":1,\"a\":2}"),                   400, "-32700"),
    link("envelope", |r| r.field("jsonrpc", json!("1.0")),              400, "-32600"),
    link("version", |r| r.without("mcp-protocol-version"),              400, "-32020"),
    link("policy",  |r| r.name("system_shell"),                         200, "-32602"),
];

/// The checks of the body: a body that is not valid JSON, or not a message, cannot also fail a later one.
const OF_THE_BODY: [&str; 3] = ["JSON", "envelope", "policy"];

fn good(client: &Client) -> Request {
    let request = client.call("whoami", json!({})).header("x-gate", "1");
    request.path(&format!("/mcp?{HUSH}"))
}

fn refused(answer: &Answer, link: &Link, what: &str) {
    assert_eq!(answer.status, link.status, "{what}: {answer:?}");
    let body = answer.json();
    let (error, message) = match &body["error"] {
        Value::String(error) => (error.clone(), &body["message"]),
        error => (error["code"].to_string(), &error["message"]),
    };
    assert_eq!(error, link.error, "{what}: {answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let message = message.as_str().unwrap();
    assert!(message.len() > 15, "{what}: it says what to do: {message}");
    assert!(!answer.body.contains(HUSH), "{what}: {answer:?}");
    for inside in ["/root", "/home", "src/", ".rs:", "panicked", "state_dir"] {
        assert!(!answer.body.contains(inside), "{what}: {answer:?}");
    }
}

fn patient() -> Server {
    let limits = "[limits]\naddress_rate = 100000\naddress_burst = 100000\n";
    let access = "[access]\nrequired_header = \"X-Gate\"\n";
    let settings = format!("{limits}{access}");
    server().policy("observe").settings(&settings).start()
}

#[test]
fn each_link_refuses_and_an_earlier_one_answers_first() {
    let server = patient();
    for client in [server.client(), server.client().http2()] {
        let mut connection = client.connection();
        let mut send = |request: Request| request.send_over(&mut connection);
        assert_eq!(send(good(&client)).status, 200);
        for (at, first) in LINKS.iter().enumerate() {
            refused(&send((first.spoil)(good(&client))), first, first.name);
            for second in &LINKS[at + 1..] {
                if OF_THE_BODY.contains(&first.name) && OF_THE_BODY.contains(&second.name) {
                    continue;
                }
                // The second change goes first, because a padded body must already be in place.
                let both = (first.spoil)((second.spoil)(good(&client)));
                let what = format!("{} before {}", first.name, second.name);
                refused(&send(both), first, &what);
            }
        }
    }
    assert!(!server.log().contains(HUSH), "{}", server.log());
}

#[test]
fn whatever_asks_for_no_token_is_charged_to_its_address() {
    // One a second is less than the slowest machine sends over one connection.
    let limits = "[limits]\naddress_rate = 1\naddress_burst = 20\n";
    let server = server().settings(limits).start();
    let strangers: [fn(&Client) -> Request; 6] = [
        |c| c.modern("tools/list").host("evil.example"),
        |c| c.modern("tools/list").header("origin", "null"),
        |c| c.request("GET", "/nothing"),
        |c| c.request("PUT", "/mcp"),
        |c| c.request("GET", "/health"),
        |c| c.request("OPTIONS", "/mcp"),
    ];
    for stranger in strangers {
        let client = server.client().http2();
        let mut connection = client.connection();
        let request = stranger(&client);
        let answers = (0..600).map(|_| request.send_over(&mut connection));
        let late = answers.into_iter().find(|answer| answer.status == 429);
        let late = late.expect("600 in a row are too many");
        assert_eq!(late.json()["error"], "address_rate");
        assert!(late.header("retry-after").is_some());
        let list = client.modern("tools/list").send_over(&mut connection);
        assert_eq!(list.status, 200, "whoever has a token is not charged");
    }
}
