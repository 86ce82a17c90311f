//! `gatewren pair` and `gatewren bridge`: a client on standard input and output, and the real server elsewhere.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use nix::sys::signal::Signal;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};

use crate::support::client::runtime;
use crate::support::command::{refused, tell, words};
use crate::support::machine::{IN_TIME, LONG_S, marker, sleeping, wait_until};
use crate::support::pipe::Pipe;
use crate::support::port::free_port;
use crate::support::server::{Builder, Directory, Server, has_sqlite3, server};

const WATCHED: &str = "gatewren:///public/bridged";

/// A server that can be restarted at the same address.
struct Box {
    home: Directory,
    address: String,
}

impl Box {
    fn new() -> Self {
        let address = format!("127.0.0.1:{}", free_port());
        let home = Directory::new();
        Self { home, address }
    }

    fn start(&self) -> Server {
        let builder: Builder = server().policy("admin").settings("");
        builder
            .directory(&self.home.0)
            .listen(&self.address)
            .start()
    }

    /// Returns the output of `pair` for an agent of this name.
    fn pair(&self, name: &str) -> Value {
        pair(&self.home.0, name, &self.address)
    }

    fn bridge(&self, server: &Server, more: &[&str]) -> Pipe {
        let pin = self.pair("for-its-pin")["pin"].as_str().unwrap().to_owned();
        let token = token_file(&self.home, server);
        let url = format!("https://{}/mcp", self.address);
        let fixed = [
            "bridge",
            "--url",
            &url,
            "--pin",
            &pin,
            "--token-file",
            &token,
        ];
        Pipe::start(&[&fixed, more].concat())
    }
}

fn pair(directory: &Path, name: &str, host: &str) -> Value {
    let args = ["pair", name, "--policy", "admin", "--host", host];
    let (said, code) = tell(directory, &args);
    assert_eq!(code, Some(0), "{said}");
    said
}

fn token_file(home: &Directory, server: &Server) -> String {
    let file = home.join("bridge-token");
    fs::write(&file, server.text("token")).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    file.display().to_string()
}

fn whoami(pipe: &mut Pipe, id: i64) -> Value {
    pipe.ask_modern(
        id,
        "tools/call",
        json!({ "name": "whoami", "arguments": {} }),
    );
    pipe.answer(id)
}

/// Returns the parameters of a call that outlasts its test.
fn sleep(marker: &str) -> Value {
    let arguments = json!({ "command": format!("sleep {marker}"), "timeout_s": LONG_S });
    json!({ "name": "system_shell", "arguments": arguments })
}

fn sqlite(file: &Path, sql: &str) {
    let mut shell = Command::new("sqlite3");
    let output = shell
        .args(["-bail", "-cmd", ".timeout 60000"])
        .arg(file)
        .arg(sql);
    let output = output.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Returns the responses to these requests, in the order of arrival.
fn answers(pipe: &mut Pipe, mut ids: Vec<i64>) -> Vec<Value> {
    let mut answers = Vec::new();
    while !ids.is_empty() {
        let message = pipe.next();
        if let Some(at) = ids.iter().position(|id| message["id"] == *id) {
            ids.remove(at);
            answers.push(message);
        }
    }
    answers
}

/// Returns the only file in a folder.
fn only_file(folder: &Path) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none());
    file
}

#[test]
fn a_code_lets_one_client_in_and_the_same_command_finds_the_token_again() {
    let server = server().policy("admin").start();
    let state = server.state_dir();
    let address = server.address().to_string();
    let shown = pair(&state, "laptop", &address);
    let code = shown["code"].as_str().unwrap();
    assert!(code.ends_with(&format!("@{address}")), "{shown}");
    assert_eq!(
        shown["command"],
        json!(["gatewren", "bridge", "--pair", code])
    );
    let agents = || words(&state, &["agent", "list"]);
    assert!(!agents().contains("laptop"), "it comes to be when it comes");

    let home = Directory::new();
    let mut pipe = Pipe::start_at(&home.0, &["bridge", "--pair", code]);
    let answer = whoami(&mut pipe, 1);
    assert!(answer["result"].to_string().contains("laptop"), "{answer}");
    assert!(agents().contains("laptop"));
    let file = only_file(&home.join("gatewren-bridge"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let kept: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(kept["pin"], shown["pin"]);
    let token = kept["token"].as_str().unwrap().to_owned();
    let argv = fs::read_to_string(format!("/proc/{}/cmdline", pipe.pid())).unwrap();
    assert!(!argv.contains(&token) && !pipe.log().contains(&token));
    assert!(!server.log().contains(&token) && !server.log().contains(&code[..14]));
    pipe.close();
    pipe.ends_well();

    // The same code works again later, any number of times.
    let mut again = Pipe::start_at(&home.0, &["bridge", "--pair", code]);
    assert!(whoami(&mut again, 1)["result"].is_object());
    again.close();
    again.ends_well();

    // Another machine, with the same code.
    let mut second = Pipe::start(&["bridge", "--pair", code]);
    let (status, said) = second.end();
    assert!(!status.success() && said.is_empty(), "{said:?}");
    let log = second.log();
    assert!(log.contains("403") && log.contains("invalid code"), "{log}");

    let audit = words(&state, &["audit", "export"]);
    for (what, count) in [("\"pair\"", 2), ("\"pair redeem\"", 2)] {
        assert!(audit.matches(what).count() >= count / 2, "{what}: {audit}");
    }
    assert!(
        !audit.contains(&token) && !audit.contains(&code[..14]),
        "{audit}"
    );
}

#[test]
fn a_code_is_good_for_five_minutes_and_only_as_it_was_told() {
    if !has_sqlite3() {
        return;
    }
    let server = server().policy("admin").start();
    let (state, address) = (server.state_dir(), server.address().to_string());
    let late = pair(&state, "late", &address);
    sqlite(&state.join("vault.db"), "UPDATE pairing SET until_ms = 1");
    let good = pair(&state, "good", &address);
    let good = good["code"].as_str().unwrap();
    // The first letter belongs to the secret.
    let other = if good.starts_with('7') { "8" } else { "7" };
    let mistyped = format!("{other}{}", &good[1..]);
    for code in [late["code"].as_str().unwrap(), &mistyped] {
        let mut pipe = Pipe::start(&["bridge", "--pair", code]);
        assert!(!pipe.end().0.success());
        assert!(pipe.log().contains("invalid code"), "{}", pipe.log());
    }
    // The last letters belong to the server's pin.
    let at = good.find('@').unwrap() - 2;
    let other = if good[at..].starts_with('7') {
        "8"
    } else {
        "7"
    };
    let mistyped = format!("{}{other}{}", &good[..at], &good[at + 1..]);
    let mut pipe = Pipe::start(&["bridge", "--pair", &mistyped]);
    assert!(!pipe.end().0.success());
    let log = pipe.log();
    assert!(log.contains("the code is mistyped"), "{log}");
    let mut pipe = Pipe::start(&["bridge", "--pair", good]);
    assert!(whoami(&mut pipe, 1)["result"].is_object());
    let agents = words(&state, &["agent", "list"]);
    assert!(!agents.contains("late"), "{agents}");
    for bad in ["nonsense", "ABCD@box", &good[..good.len() / 2]] {
        let mut pipe = Pipe::start(&["bridge", "--pair", bad]);
        assert_eq!(pipe.end().0.code(), Some(2), "{bad}");
    }
}

#[test]
fn codes_are_tried_so_often_and_no_more() {
    let server = server().policy("admin").start();
    let client = server.client();
    let tried = |body: &str| {
        let request = client.request("POST", "/pair").without("authorization");
        request.body(body.as_bytes()).send_once()
    };
    assert_eq!(tried("{}").status, 400);
    assert_eq!(tried("{\"code\":\"A\",\"more\":1}").status, 400);
    let mut refused = 0;
    loop {
        let answer = tried("{\"code\":\"ABCDEFGHJKMN\"}");
        if answer.status == 429 {
            assert!(answer.header("retry-after").is_some());
            break;
        }
        assert_eq!(answer.status, 403);
        assert_eq!(answer.json()["error"], "bad_code");
        refused += 1;
        assert!(refused <= 20);
    }
    assert!(refused >= 8, "{refused}");
}

/// Starts another server with its own key; its task fails if it receives no data.
fn stranger() -> (String, tokio::task::JoinHandle<Result<(), String>>) {
    use tokio::io::AsyncReadExt as _;
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth();
    let config = config.with_single_cert(vec![made.cert.der().clone()], key);
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let heard = runtime().spawn(async move {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(socket).await.map_err(|e| e.to_string())?;
        let mut said = Vec::new();
        match stream.read_to_end(&mut said).await {
            Ok(_) if !said.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    (address, heard)
}

#[test]
fn a_stranger_is_told_nothing() {
    let server = server().policy("admin").start();
    let state = server.state_dir();
    let shown = pair(&state, "laptop", &server.address().to_string());
    let code = shown["code"].as_str().unwrap();
    let (letters, _) = code.split_once('@').unwrap();

    // A man in the middle, or another server at the address, has another key.
    let (address, heard) = stranger();
    let at_stranger = format!("{letters}@{address}");
    let mut pipe = Pipe::start(&["bridge", "--pair", &at_stranger]);
    assert!(!pipe.end().0.success());
    let log = pipe.log();
    assert!(log.contains("nothing was sent"), "{log}");
    let intercepted = log.find("intercepts").unwrap();
    assert!(
        log.find("the code is mistyped") < Some(intercepted),
        "{log}"
    );
    assert!(!log.contains("UnknownIssuer"), "{log}");
    let told = runtime().block_on(heard).unwrap();
    assert!(told.is_err(), "it was told something");

    let (address, heard) = stranger();
    let url = format!("https://{address}/mcp");
    let home = Directory::new();
    let token = token_file(&home, &server);
    let pin = shown["pin"].as_str().unwrap();
    let mut pipe = Pipe::start(&[
        "bridge",
        "--url",
        &url,
        "--pin",
        pin,
        "--token-file",
        &token,
    ]);
    let begun = Instant::now();
    let answer = whoami(&mut pipe, 1);
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("nothing was sent"), "{said}");
    assert!(begun.elapsed().as_secs() < 20, "waiting mends nothing");
    assert!(runtime().block_on(heard).unwrap().is_err());

    // The right server with a wrong pin, and without one: no authority known here has signed its certificate.
    let url = server.text("url").to_owned();
    let wrong = "sha256/AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    for pin in [&["--pin", wrong][..], &[]] {
        let fixed = ["bridge", "--url", &url, "--token-file", &token];
        let mut pipe = Pipe::start(&[&fixed, pin].concat());
        let answer = whoami(&mut pipe, 1);
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("nothing was sent"), "{said}");
    }
    // None of these attempts has used up the code.
    let mut pipe = Pipe::start(&["bridge", "--pair", code]);
    assert!(whoami(&mut pipe, 1)["result"].is_object());
}

#[test]
fn what_is_asked_while_the_server_is_away_is_answered_when_it_is_back() {
    let place = Box::new();
    let mut first = place.start();
    let mut pipe = place.bridge(&first, &[]);
    pipe.open("2025-11-25", json!({}));
    pipe.ask(1, "tools/list", json!({}));
    assert!(pipe.answer(1)["result"]["tools"].is_array());
    assert!(whoami(&mut pipe, 2)["result"].is_object());

    first.signal(Signal::SIGTERM);
    first.ended();
    let call = json!({ "name": "whoami", "arguments": {} });
    pipe.ask(3, "tools/call", call.clone());
    pipe.ask_modern(4, "tools/call", call.clone());
    pipe.ask_modern(5, "tools/list", json!({}));
    let _second = place.start();
    for answer in answers(&mut pipe, vec![3, 4, 5]) {
        assert!(answer["result"].is_object(), "{answer}");
    }
    pipe.ask(6, "tools/call", call);
    assert!(pipe.answer(6)["result"].is_object());
    pipe.close();
    pipe.ends_well();
}

#[test]
fn lines_behind_initialize_wait_for_the_session_that_it_begins() {
    let place = Box::new();
    let server = place.start();
    let mut pipe = place.bridge(&server, &[]);
    let who = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who });
    pipe.ask(0, "initialize", params);
    pipe.ask(1, "ping", json!({}));
    pipe.notify("notifications/initialized", &json!({}));
    let call = json!({ "name": "whoami", "arguments": {} });
    pipe.ask(2, "tools/call", call);
    pipe.close();
    assert!(pipe.answer(0)["result"]["serverInfo"].is_object());
    for answer in answers(&mut pipe, vec![1, 2]) {
        assert!(answer["result"].is_object(), "{answer}");
    }
    pipe.ends_well();
}

#[test]
fn a_session_that_was_forgotten_is_begun_again_without_the_client() {
    if !has_sqlite3() {
        return;
    }
    let place = Box::new();
    let mut first = place.start();
    first.put("bridged", &json!(1));
    let mut pipe = place.bridge(&first, &[]);
    pipe.open("2025-11-25", json!({}));
    pipe.ask(1, "resources/subscribe", json!({ "uri": WATCHED }));
    assert!(pipe.answer(1)["result"].is_object());
    first.signal(Signal::SIGTERM);
    first.ended();
    sqlite(
        &place.home.join("vault.db"),
        "DELETE FROM session; DELETE FROM subscription",
    );
    pipe.passed();

    let second = place.start();
    pipe.ask(
        2,
        "tools/call",
        json!({ "name": "whoami", "arguments": {} }),
    );
    let answer = pipe.answer(2);
    assert!(answer["result"].is_object(), "{answer}");
    let passed = pipe.passed();
    let told = |method: &str| passed.iter().any(|message| message["method"] == method);
    assert!(told("notifications/tools/list_changed"), "{passed:?}");
    assert!(told("notifications/resources/updated"), "{passed:?}");
    assert!(
        !passed.iter().any(|message| message.get("id").is_some()),
        "{passed:?}"
    );
    // The new session has the subscriptions of the old one; its stream may open a moment later.
    wait_until("a change is told", IN_TIME, || {
        second.put("bridged", &json!(marker()));
        pipe.ask(3, "ping", json!({}));
        pipe.answer(3);
        let mut passed = pipe.passed().into_iter();
        passed.any(|message| message["params"]["uri"] == WATCHED)
    });
    pipe.close();
    pipe.ends_well();
}

#[test]
fn a_subscription_goes_on_over_a_restart() {
    if !has_sqlite3() {
        return;
    }
    let place = Box::new();
    let mut first = place.start();
    first.put("bridged", &json!(1));
    let mut pipe = place.bridge(&first, &[]);
    let filter = json!({ "resourceSubscriptions": [WATCHED], "toolsListChanged": true });
    pipe.ask_modern(
        1,
        "subscriptions/listen",
        json!({ "notifications": filter }),
    );
    pipe.told("notifications/subscriptions/acknowledged");
    first.put("bridged", &json!(2));
    let told = pipe.told("notifications/resources/updated");
    assert_eq!(told["params"]["uri"], WATCHED);
    first.signal(Signal::SIGTERM);
    first.ended();
    let second = place.start();
    // The client is notified to read again, because it may have missed a change.
    let told = pipe.told("notifications/resources/updated");
    let subscription = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*subscription, 1, "{told}");
    second.put("bridged", &json!(3));
    pipe.told("notifications/resources/updated");
    let passed = pipe.passed();
    assert!(
        passed.iter().all(|message| message["id"] != 1
            && message["method"] != "notifications/subscriptions/acknowledged"),
        "{passed:?}"
    );
    pipe.cancel(1);
    pipe.close();
    pipe.ends_well();
}

#[test]
fn a_call_whose_end_nobody_knows_is_not_made_again() {
    let place = Box::new();
    let first = place.start();
    let mut pipe = place.bridge(&first, &[]);
    pipe.open("2025-11-25", json!({}));
    let marked = marker();
    let call = sleep(&marked);
    pipe.ask_modern(1, "tools/call", call.clone());
    pipe.ask(2, "tools/call", call);
    wait_until("both run", IN_TIME, || sleeping(&marked).len() >= 2);
    first.signal(Signal::SIGKILL);
    drop(first);
    let second = place.start();
    for answer in answers(&mut pipe, vec![1, 2]) {
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains("check before you repeat it"), "{answer}");
    }
    wait_until("none was made again", IN_TIME, || {
        sleeping(&marked).is_empty()
    });
    assert!(whoami(&mut pipe, 3)["result"].is_object());
    drop(second);
}

#[test]
fn giving_a_call_up_ends_it_on_the_box() {
    let server = server().policy("admin").start();
    let shown = pair(&server.state_dir(), "laptop", &server.address().to_string());
    let mut pipe = Pipe::start(&["bridge", "--pair", shown["code"].as_str().unwrap()]);
    pipe.open("2025-11-25", json!({}));
    for modern in [true, false] {
        let marked = marker();
        let call = sleep(&marked);
        let id = 10 + i64::from(modern);
        if modern {
            pipe.ask_modern(id, "tools/call", call);
        } else {
            pipe.ask(id, "tools/call", call);
        }
        wait_until("it runs", IN_TIME, || !sleeping(&marked).is_empty());
        pipe.cancel(id);
        wait_until("it ends", IN_TIME, || sleeping(&marked).is_empty());
    }
    assert!(whoami(&mut pipe, 20)["result"].is_object());
    pipe.close();
    let said = pipe.ends_well();
    let answers = |message: &Value| message["id"] == 10 || message["id"] == 11;
    assert!(!said.iter().any(answers), "{said:?}");
}

#[test]
fn a_server_that_stays_away_is_an_error_in_time() {
    let place = Box::new();
    let first = place.start();
    let mut pipe = place.bridge(&first, &["--wait", "1"]);
    assert!(whoami(&mut pipe, 1)["result"].is_object());
    drop(first);
    let answer = whoami(&mut pipe, 2);
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(said.contains("cannot be reached"), "{said}");
    pipe.write(b"nonsense\n[]\n");
    assert_eq!(pipe.next()["error"]["code"], -32_700);
    assert_eq!(pipe.next()["error"]["code"], -32_600);
    pipe.close();
    pipe.ends_well();
}

#[test]
fn a_code_whose_name_was_taken_waits_until_the_name_is_free() {
    let server = server().policy("admin").start();
    let state = server.state_dir();
    let shown = pair(&state, "laptop", &server.address().to_string());
    words(&state, &["agent", "add", "laptop"]);
    let code = shown["code"].as_str().unwrap();
    let bridge = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
        let home = Directory::new();
        let command = command
            .args(["bridge", "--pair", code])
            .env("XDG_STATE_HOME", &home.0)
            .stdin(std::process::Stdio::null());
        command.output().unwrap()
    };
    let output = bridge();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("already an agent \"laptop\""), "{said}");
    words(&state, &["agent", "revoke", "laptop"]);
    assert!(bridge().status.success());
    words(&state, &["agent", "show", "laptop"]);
}

#[test]
fn a_token_that_ends_is_said_to_the_client() {
    let server = server().policy("admin").start();
    let state = server.state_dir();
    let shown = pair(&state, "laptop", &server.address().to_string());
    let mut pipe = Pipe::start(&["bridge", "--pair", shown["code"].as_str().unwrap()]);
    assert!(whoami(&mut pipe, 1)["result"].is_object());
    words(&state, &["agent", "revoke", "laptop"]);
    wait_until("it is let in no more", IN_TIME, || {
        let answer = whoami(&mut pipe, 2);
        let said = answer["error"]["message"].as_str().unwrap_or_default();
        said.contains("401") && said.contains("gatewren pair")
    });
    let used = refused(&state, &["pair", "x", "--policy", "god"]);
    assert!(used.contains("god"), "{used}");
}
