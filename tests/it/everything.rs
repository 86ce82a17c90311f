//! The fixtures' server from outside: its errors, its output, its exit.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::support::machine::{IN_TIME, wait_until};

/// A server of fixtures; killed if a test fails before it ends.
struct Server {
    child: Child,
    said: Value,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut command = command(options);
        command.arg("--json");
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap();
        Self { child, said }
    }

    fn address(&self) -> SocketAddr {
        let url = self.said["url"].as_str().unwrap();
        let (_, rest) = url.split_once("://").unwrap();
        rest.strip_suffix("/mcp").unwrap().parse().unwrap()
    }

    /// Sends one request on a new connection; returns status line, headers and body.
    fn post(&self, headers: &str, body: &Value) -> String {
        let mut answer = String::new();
        self.send(headers, body)
            .read_to_string(&mut answer)
            .unwrap();
        answer
    }

    /// Sends one request on a new connection, without reading its response.
    fn send(&self, headers: &str, body: &Value) -> TcpStream {
        let body = body.to_string();
        let mut stream = TcpStream::connect(self.address()).unwrap();
        stream.set_read_timeout(Some(IN_TIME)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        )
        .unwrap();
        stream
    }

    /// Returns a new session's id.
    fn session(&self, version: &str) -> String {
        self.session_of(&initialize(version))
    }

    fn session_of(&self, initialize: &Value) -> String {
        let answer = self.post("", initialize);
        let header = answer.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then_some(value)
        });
        header.unwrap().trim().to_owned()
    }

    fn stop(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        let mut status = None;
        wait_until("it ends", IN_TIME, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.arg("everything").args(options);
    command
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments } })
}

fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": { "elicitation": {}, "sampling": {} },
        "clientInfo": { "name": "test", "version": "1" } } })
}

#[test]
fn what_would_be_open_to_others_is_refused() {
    for (options, word) in [
        (vec!["--listen", "0.0.0.0:0"], "--token"),
        (vec!["--listen", "0.0.0.0:0", "--tls"], "--token"),
        (vec!["--listen", "[::]:0", "--token", "x"], "--tls"),
        (vec!["--token", " "], "--token"),
    ] {
        let output = command(&options).output().unwrap();
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}: {words}");
        assert!(words.contains(word), "{options:?}: {words}");
        assert!(output.stdout.is_empty(), "{options:?}");
    }
}

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let server = Server::start(&["streamableHttp"]);
    assert!(server.address().ip().is_loopback());
    let answer = server.post("", &initialize("2025-11-25"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.contains("gatewren-everything"), "{answer}");
    assert!(server.stop().success());
}

#[test]
fn with_a_token_nobody_comes_in_without_it() {
    let server = Server::start(&["--token", "open sesame"]);
    let status = |headers: &str| {
        let answer = server.post(headers, &initialize("2025-11-25"));
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(""), "401");
    assert_eq!(status("Authorization: Bearer open\r\n"), "401");
    assert_eq!(status("Authorization: Bearer open sesame\r\n"), "200");
}

#[test]
fn its_own_authority_goes_when_it_goes() {
    let server = Server::start(&["--tls"]);
    assert!(
        server.said["url"].as_str().unwrap().starts_with("https://"),
        "{}",
        server.said
    );
    let ca = server.said["ca"].as_str().unwrap().to_owned();
    let directory = Path::new(&ca).parent().unwrap().parent().unwrap();
    assert!(Path::new(&ca).is_file(), "{ca}");
    assert!(server.stop().success());
    assert!(!directory.exists(), "{}", directory.display());
}

#[test]
fn a_question_that_nobody_can_hear_fails_the_call_at_once() {
    let server = Server::start(&[]);
    let person = call("test_elicitation", &json!({ "message": "Who?" }));
    let model = call("test_sampling", &json!({ "prompt": "Why?" }));
    for (version, body) in [("2025-11-25", person), ("2025-03-26", json!([model]))] {
        let session = server.session(version);
        let headers = format!("Mcp-Session-Id: {session}\r\nAccept: application/json\r\n");
        let answer = server.post(&headers, &body);
        assert!(answer.contains("-32600"), "{version}: {answer}");
        assert!(answer.contains("text/event-stream"), "{version}: {answer}");
    }
}

#[test]
fn every_result_says_who_answered() {
    let server = Server::start(&[]);
    for tool in ["about", "test_input_required_result_elicitation"] {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": tool, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } } } });
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
        );
        let answer = server.post(&headers, &body);
        assert!(answer.contains("resultType"), "{answer}");
        assert!(
            answer.contains("modelcontextprotocol/serverInfo"),
            "{answer}"
        );
    }
}

#[test]
fn what_it_was_started_with_is_told_to_nobody() {
    let mut started = command(&["--json"]);
    started.env("GATEWREN_TEST_SECRET", "hidden");
    let server = Server::spawn(started);
    let headers = format!(
        "Mcp-Session-Id: {}\r\nAccept: application/json\r\n",
        server.session("2025-11-25")
    );
    let answer = server.post(&headers, &call("get-env", &json!({})));
    assert!(answer.contains(env!("CARGO_PKG_VERSION")), "{answer}");
    assert!(
        !answer.contains("hidden") && !answer.contains("PATH"),
        "{answer}"
    );
}

#[test]
fn no_fixture_opens_another_url_than_one_of_data() {
    let server = Server::start(&[]);
    let headers = format!(
        "Mcp-Session-Id: {}\r\nAccept: application/json\r\n",
        server.session("2025-11-25")
    );
    for data in ["http://127.0.0.1:1/", "file:///etc/hostname"] {
        let gzip = call("gzip-file-as-resource", &json!({ "data": data }));
        let answer = server.post(&headers, &gzip);
        assert!(answer.contains(r#""isError":true"#), "{answer}");
        assert!(answer.contains("fetches nothing"), "{answer}");
    }
}

#[test]
fn x4_e12_a_visit_to_a_url_is_asked_for_by_an_error_once_and_then_by_name() {
    let server = Server::start(&[]);
    let mut initialize = initialize("2025-11-25");
    initialize["params"]["capabilities"] = json!({ "elicitation": { "url": {} } });
    let session = format!("Mcp-Session-Id: {}\r\n", server.session_of(&initialize));
    let visit = json!({ "url": "https://example.org/", "errorPath": true });
    let visit = call("trigger-url-elicitation", &visit);

    let answer = server.post(&format!("{session}Accept: application/json\r\n"), &visit);
    assert!(answer.contains("-32042"), "{answer}");
    assert!(answer.contains("elicitationId"), "{answer}");

    let stream = server.send(&format!("{session}Accept: text/event-stream\r\n"), &visit);
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let asked = lines
        .find(|line| line.contains("elicitation/create"))
        .unwrap();
    assert!(asked.contains("https://example.org/"), "{asked}");
    assert!(asked.contains("elicitationId"), "{asked}");
}
