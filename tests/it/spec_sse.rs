//! HTTP+SSE of 2024-11-05 (I7 of the checklist): off by default, and behind the whole guard when turned on.

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::server::{Server, server, shared};
use crate::support::stream::{Next, Stream};

fn turned_on() -> Server {
    server()
        .policy("admin")
        .settings("[access]\nhttp_sse = true\n")
        .start()
}

/// A client of the transport: its stream, and the path for its POSTs.
struct Old {
    client: Client,
    stream: Stream,
    address: String,
}

impl Old {
    fn connect(client: &Client) -> Self {
        let mut stream = client
            .request("GET", "/sse")
            .accept("text/event-stream")
            .open();
        assert_eq!(stream.status(), 200);
        assert_eq!(stream.head.headers["content-type"], "text/event-stream");
        let Next::Event(event) = stream.next(IN_TIME) else {
            panic!("the endpoint was due");
        };
        assert_eq!(event.kind, "endpoint");
        let address = event.data;
        assert!(address.starts_with("/message?sessionId="), "{address}");
        Self {
            client: client.clone(),
            stream,
            address,
        }
    }

    /// Starts a long command that does nothing; returns its marker.
    fn sleep(&self, id: i64) -> String {
        let marker = marker();
        let arguments = json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S });
        let call = json!({ "name": "system_shell", "arguments": arguments });
        self.send(id, "tools/call", call);
        wait_until("the command runs", IN_TIME, || sleeping(&marker).len() == 1);
        marker
    }

    fn open(client: &Client, version: &str) -> Self {
        let mut old = Self::connect(client);
        let who = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": who });
        let opened = old.ask(0, "initialize", params);
        assert_eq!(opened["result"]["protocolVersion"], version);
        old.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        old
    }

    fn post(&self, message: &Value) {
        let status = post(&self.client, &self.address, message);
        assert_eq!(status, 202, "{message}");
    }

    #[expect(clippy::needless_pass_by_value, reason = "a test writes it in place")]
    fn send(&self, id: i64, method: &str, params: Value) {
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.send(id, method, params);
        let answer = self.stream.message_within(IN_TIME);
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

fn post(client: &Client, address: &str, message: &Value) -> u16 {
    let request = client.request("POST", address);
    let request = request.header("content-type", "application/json");
    request.body(message.to_string().as_bytes()).send().status
}

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })
}

#[test]
fn i7_it_is_off_unless_it_is_turned_on() {
    let server = shared("operate");
    for (verb, path) in [
        ("GET", "/sse"),
        ("POST", "/message?sessionId=x"),
        ("OPTIONS", "/sse"),
    ] {
        let request = server.client().request(verb, path);
        let elsewhere = server.client().request(verb, "/nowhere").send();
        let answer = request.send();
        assert_eq!(
            (answer.status, answer.json()),
            (404, elsewhere.json()),
            "{verb} {path}"
        );
    }
}

#[test]
fn i7_what_is_posted_is_answered_on_the_stream() {
    let server = turned_on();
    for (way, client) in server.clients() {
        for version in ["2024-11-05", "2025-03-26", "2025-11-25"] {
            let mut old = Old::open(&client, version);
            let called = old.ask(
                1,
                "tools/call",
                json!({ "name": "whoami", "arguments": {} }),
            );
            assert!(
                called["result"]["content"].is_array(),
                "{way} {version}: {called}"
            );
            let has_structure = called["result"].get("structuredContent").is_some();
            assert_eq!(has_structure, version >= "2025-06-18", "{way} {version}");
            assert_eq!(old.ask(2, "nonsense", json!({}))["error"]["code"], -32_601);
        }
    }
}

#[test]
fn i7_the_whole_guard_stands_before_both_verbs() {
    let server = turned_on();
    let client = server.client();
    let old = Old::open(&client, "2024-11-05");
    let requests = [("GET", "/sse"), ("POST", old.address.as_str())];
    for (verb, path) in requests {
        let request = || {
            let request = client.request(verb, path).accept("text/event-stream");
            request
                .header("content-type", "application/json")
                .body(ping().to_string().as_bytes())
        };
        assert_eq!(
            request().without("authorization").send().status,
            401,
            "{verb}"
        );
        assert_eq!(request().host("evil.example").send().status, 421, "{verb}");
        assert_eq!(
            request()
                .header("origin", "https://evil.example")
                .send()
                .status,
            403,
            "{verb}"
        );
    }
    let typeless = client
        .request("POST", &old.address)
        .header("content-type", "text/plain");
    assert_eq!(typeless.body(b"{}").send().status, 415);
    let vast = vec![b' '; (1 << 20) + 1];
    let vast = client
        .request("POST", &old.address)
        .header("content-type", "application/json")
        .body(&vast);
    assert_eq!(vast.send().status, 413);
    assert_eq!(
        client.request("GET", "/message?sessionId=x").send().status,
        405
    );
    let request = client
        .request("POST", "/sse")
        .header("content-type", "application/json");
    assert_eq!(request.body(b"{}").send().status, 405);
    assert_eq!(
        client
            .request("GET", "/sse")
            .accept("application/json")
            .send()
            .status,
        406
    );
}

#[test]
fn i7_what_cannot_be_served_is_said_to_the_post() {
    let server = turned_on();
    let client = server.client();
    let mut old = Old::open(&client, "2024-11-05");
    let modern = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} } } });
    let batch = json!([ping()]);
    assert_eq!(post(&client, &old.address, &json!("nonsense")), 400);
    assert_eq!(post(&client, &old.address, &modern), 400);
    assert_eq!(post(&client, &old.address, &json!([modern])), 400);
    // The session decides whether it accepts batches, so the error comes on its stream.
    assert_eq!(post(&client, &old.address, &batch), 202);
    assert_eq!(old.stream.message_within(IN_TIME)["error"]["code"], -32_600);
    for address in ["/message", "/message?sessionId=", "/message?sessionId=x"] {
        assert_eq!(post(&client, address, &ping()), 404, "{address}");
    }
    let nobodys = "/message?sessionId=00000000-0000-4000-8000-000000000000";
    assert_eq!(post(&client, nobodys, &ping()), 404);
}

#[test]
fn i7_a_connection_is_its_agents_own_and_ends_with_its_stream() {
    let server = turned_on();
    let client = server.client();
    let mut old = Old::open(&client, "2024-11-05");
    let other = client.clone().with_token(&added(&server));
    wait_until("the other one is known", IN_TIME, || {
        post(&other, &old.address, &ping()) != 401
    });
    assert_eq!(post(&other, &old.address, &ping()), 404);
    assert_eq!(old.ask(1, "ping", json!({}))["result"], json!({}));

    let marker = old.sleep(2);
    let Old {
        client,
        stream,
        address,
    } = old;
    drop(stream);
    wait_until("its command is gone", IN_TIME, || {
        sleeping(&marker).is_empty()
    });
    wait_until("nobody is there", IN_TIME, || {
        post(&client, &address, &ping()) == 404
    });
}

#[test]
fn i7_p3_a_call_can_be_cancelled() {
    let server = turned_on();
    let mut old = Old::open(&server.client(), "2024-11-05");
    let marker = old.sleep(1);
    let params = json!({ "requestId": 1 });
    old.post(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    wait_until("it is gone", IN_TIME, || sleeping(&marker).is_empty());
    assert_eq!(
        old.ask(2, "ping", json!({}))["result"],
        json!({}),
        "nothing is said of it before"
    );
}

#[test]
fn i7_a_change_is_told_on_the_stream() {
    let server = turned_on();
    let mut old = Old::open(&server.client(), "2024-11-05");
    old.ask(
        1,
        "resources/subscribe",
        json!({ "uri": "gatewren:///public/notes" }),
    );
    if crate::support::server::has_sqlite3() {
        server.put("notes", &json!("hello"));
        assert_eq!(old.stream.updated(), "gatewren:///public/notes");
    }
}

#[test]
fn i7_a_server_that_stops_ends_the_streams() {
    let mut server = turned_on();
    let mut old = Old::open(&server.client(), "2024-11-05");
    server.signal(Signal::SIGTERM);
    old.stream.ends();
    assert!(server.ended().success());
}

#[test]
fn i7_connections_are_counted_among_their_agents_streams() {
    let settings = "[access]\nhttp_sse = true\n[limits]\nmax_streams_per_agent = 2\n";
    let server = server().settings(settings).start();
    let client = server.client();
    let first = Old::open(&client, "2024-11-05");
    let _second = Old::open(&client, "2024-11-05");
    let one_more = || {
        client
            .request("GET", "/sse")
            .accept("text/event-stream")
            .open()
            .status()
    };
    assert_eq!(one_more(), 503);
    drop(first);
    wait_until("there is a place again", IN_TIME, || one_more() == 200);
}

/// Adds another agent, and returns its token.
fn added(server: &Server) -> String {
    let state = Path::new(server.text("state_db")).parent().unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.args([
        "agent", "add", "other", "--policy", "admin", "--json", "--dir",
    ]);
    let output = command.arg(state).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    said["token"].as_str().unwrap().to_owned()
}

/// This transport on the fixtures' server.
#[cfg(feature = "everything")]
mod fixtures {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpStream;
    use std::process::{Command, Stdio};

    use serde_json::Value;

    #[test]
    fn i7_the_fixtures_are_served_that_way() {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        command.args(["everything", "sse", "--listen", "127.0.0.1:0", "--json"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        let url = said["url"].as_str().unwrap();
        let address = url
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/sse")
            .unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"event: endpoint\ndata: /message?sessionId=") {
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
