//! A client that has started gatewren itself and talks to it on standard input and output.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::machine::IN_TIME;
use super::namespace::NetworkNamespace;
use super::server::Directory;

/// gatewren on pipes; killed if a test fails before it ends.
pub struct Pipe {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// The messages that arrived before the response that a test waited for.
    passed: Vec<Value>,
    home: Directory,
}

impl Pipe {
    /// Starts `gatewren` with these arguments. Its log goes to a file, and its home is a separate directory.
    pub fn start(words: &[&str]) -> Self {
        Self::start_in(Directory::new(), words)
    }

    /// Starts it on a separate machine.
    pub fn start_apart(machine: &NetworkNamespace, words: &[&str]) -> Self {
        let home = Directory::new();
        let inside = machine.inside(env!("CARGO_BIN_EXE_gatewren"));
        let process = launch(inside, &home.0, &home.join("log"), words);
        Self::of(process, home)
    }

    /// Starts it in a home that others may share, and that the test deletes.
    pub fn start_at(home: &Path, words: &[&str]) -> Self {
        let own = Directory::new();
        let process = launch(here(), home, &own.join("log"), words);
        Self::of(process, own)
    }

    fn start_in(home: Directory, words: &[&str]) -> Self {
        let process = launch(here(), &home.0, &home.join("log"), words);
        Self::of(process, home)
    }

    fn of(mut process: Child, home: Directory) -> Self {
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            process,
            input,
            lines,
            passed: Vec::new(),
            home,
        }
    }

    /// Starts the fixtures.
    pub fn fixtures() -> Self {
        Self::start(&["everything", "stdio"])
    }

    /// Starts a trial with this policy.
    pub fn trial(policy: &str) -> Self {
        Self::start(&["try", "--stdio", "--policy", policy])
    }

    /// Returns the directory of a trial's state.
    pub fn state(&self) -> PathBuf {
        self.home.join("gatewren-try")
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Writes arbitrary bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).and_then(|()| input.flush()).unwrap();
    }

    /// Writes a line.
    pub fn say(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// Sends a request of a session.
    #[expect(clippy::needless_pass_by_value, reason = "a test writes it in place")]
    pub fn ask(&mut self, id: i64, method: &str, params: Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    /// Sends a request of 2026-07-28.
    pub fn ask_modern(&mut self, id: i64, method: &str, params: Value) {
        self.ask(id, method, modern(params, json!({})));
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub fn cancel(&mut self, id: i64) {
        self.notify("notifications/cancelled", &json!({ "requestId": id }));
    }

    /// Opens a session, and returns the result of `initialize`.
    #[expect(clippy::needless_pass_by_value, reason = "a test writes it in place")]
    pub fn open(&mut self, version: &str, capabilities: Value) -> Value {
        let who = json!({ "name": "test", "version": "1" });
        let params = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": who
        });
        self.ask(0, "initialize", params);
        let answer = self.answer(0);
        self.notify("notifications/initialized", &json!({}));
        answer["result"].clone()
    }

    /// Returns the next line, which must come in time and be a message.
    pub fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(IN_TIME);
        message(&line.unwrap_or_else(|why| panic!("a message was due: {why}\n{}", self.log())))
    }

    /// Returns the response to a request; keeps the messages before it in `passed`.
    pub fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.passed.push(message);
        }
    }

    /// Returns the next message with this method.
    pub fn told(&mut self, method: &str) -> Value {
        loop {
            let message = self.next();
            if message["method"] == method {
                return message;
            }
            self.passed.push(message);
        }
    }

    /// Takes the messages that arrived before the last response.
    pub fn passed(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.passed)
    }

    /// Closes standard input.
    pub fn close(&mut self) {
        self.input = None;
    }

    /// Returns whether it is still running.
    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for its exit, and returns the remaining messages.
    pub fn end(&mut self) -> (ExitStatus, Vec<Value>) {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < IN_TIME, "it still runs\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut said = self.passed();
        loop {
            match self.lines.recv_timeout(IN_TIME) {
                Ok(line) => said.push(message(&line)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("somebody holds its output open"),
            }
        }
        (status, said)
    }

    /// Waits for its exit, which must be successful.
    pub fn ends_well(&mut self) -> Vec<Value> {
        let (status, said) = self.end();
        assert_eq!(
            (status.code(), status.signal()),
            (Some(0), None),
            "{}",
            self.log()
        );
        assert!(!self.log().contains("panicked"), "{}", self.log());
        said
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn here() -> Command {
    Command::new(env!("CARGO_BIN_EXE_gatewren"))
}

fn launch(mut command: Command, home: &Path, log: &Path, words: &[&str]) -> Child {
    // A bridge that was built alone passes the same tests.
    let words = match (words, std::env::var_os("GATEWREN_BRIDGE")) {
        (["bridge", words @ ..], Some(alone)) => {
            command = Command::new(alone);
            words
        }
        _ => words,
    };
    command.args(words).env("XDG_STATE_HOME", home);
    command
        .env_remove("NOTIFY_SOCKET")
        .stderr(File::create(log).unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

/// Adds the `_meta` of a 2026-07-28 request to parameters.
pub fn modern(params: Value, capabilities: Value) -> Value {
    let Value::Object(mut params) = params else {
        panic!("parameters are an object: {params}");
    };
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    Value::Object(params)
}

fn message(line: &str) -> Value {
    let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line:?}"));
    let first = message.get(0).unwrap_or(&message);
    assert_eq!(first["jsonrpc"], "2.0", "no message: {line}");
    message
}
