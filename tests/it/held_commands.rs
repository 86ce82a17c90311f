//! A command is prepared while the intent of its call is being written, and never runs before it is on the disk.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::attacked_helper::{AttackedHelper, HOST_SHELL, everything, request};
use crate::support::helper::frame;
use crate::support::machine::{IN_TIME, call_cgroups, cgroup2, is_root, lxcpath, wait_until};
use crate::support::request::Running;
use crate::support::server::{Directory, Server, server};

/// Long enough for a command that is not held: it needs about a tenth of this.
const QUIET: Duration = Duration::from_millis(500);

fn vault(home: &Directory) -> Connection {
    let connection = Connection::open(home.join("vault.db")).unwrap();
    connection.busy_timeout(IN_TIME).unwrap();
    connection
}

/// Returns the kinds and outcomes of the audit's rows.
fn rows(vault: &Connection) -> Vec<(String, Option<String>)> {
    let mut rows = vault
        .prepare("SELECT kind, outcome FROM audit ORDER BY seq")
        .unwrap();
    let rows = rows.query_map([], |row| row.try_into()).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A call whose command would create a file. The intent cannot be written, because the vault is locked.
struct WaitingCall {
    server: Server,
    vault: Connection,
    file: PathBuf,
    running: Running,
    home: Directory,
}

impl WaitingCall {
    fn begin() -> Self {
        let home = Directory::new();
        let server = server().policy("admin").directory(&home.0).start();
        let (vault, file) = (vault(&home), home.join("ran"));
        vault.execute_batch("BEGIN IMMEDIATE").unwrap();
        let command = json!({ "command": format!("touch {}", file.display()) });
        let running = server.client().call("system_shell", command).begin();
        until_prepared(&server);
        Self {
            server,
            vault,
            file,
            running,
            home,
        }
    }
}

/// Waits until the process of the call is there, if this machine shows it.
fn until_prepared(server: &Server) {
    if is_root() && cgroup2().is_some() {
        let helpers = server.children();
        wait_until("the command is prepared", IN_TIME, || {
            helpers.iter().any(|pid| !call_cgroups(*pid).is_empty())
        });
    }
}

fn until_nothing_is_left(server: &Server) {
    let helpers = server.children();
    wait_until("nothing is left", IN_TIME, || {
        helpers.iter().all(|pid| call_cgroups(*pid).is_empty())
    });
}

#[test]
fn a_command_is_prepared_but_waits_for_its_intent() {
    let WaitingCall {
        server: _server,
        vault,
        file,
        running,
        home: _home,
    } = WaitingCall::begin();
    sleep(QUIET);
    assert!(!file.exists() && !running.is_finished());
    vault.execute_batch("ROLLBACK").unwrap();
    assert_eq!(
        running.finish().result()["structuredContent"]["exit_code"],
        0
    );
    assert!(file.exists());
    let expected = [("intent", None), ("outcome", Some("ok"))];
    let expected = expected.map(|(kind, outcome)| (kind.to_owned(), outcome.map(str::to_owned)));
    wait_until("both rows are there", IN_TIME, || rows(&vault) == expected);
}

#[test]
fn a_call_that_is_cancelled_before_its_intent_is_written_runs_nothing_and_is_on_record() {
    let WaitingCall {
        server,
        vault,
        file,
        running,
        home: _home,
    } = WaitingCall::begin();
    drop(running);
    until_nothing_is_left(&server);
    vault.execute_batch("ROLLBACK").unwrap();
    wait_until("both rows are there", IN_TIME, || rows(&vault).len() == 2);
    assert_eq!(
        rows(&vault)[1],
        ("outcome".to_owned(), Some("cancelled".to_owned()))
    );
    assert!(!file.exists());
}

#[test]
fn a_command_whose_intent_cannot_be_written_never_runs() {
    let home = Directory::new();
    let (mut builder, containers) = (server().policy("admin").directory(&home.0), lxcpath());
    if let Some(path) = &containers {
        builder = builder.lxcpath(path);
    }
    let server = builder.start();
    let (client, vault) = (server.client(), vault(&home));
    let inside = PathBuf::from(format!("/tmp/ran-{}", std::process::id()));
    let file = home.join("ran");
    let mut calls = vec![("system_shell", json!({}), file.clone())];
    if containers.is_some() {
        calls.push(("container_shell", json!({ "container": "alpha" }), inside));
    }
    for (tool, place, file) in &calls {
        let call = |command: String| {
            let mut arguments = place.clone();
            arguments["command"] = json!(command);
            client.call(tool, arguments).send()
        };
        let exists = format!("test -e {}", file.display());
        let exit_code = |command: &str| {
            call(command.to_owned()).result()["structuredContent"]["exit_code"].clone()
        };
        assert_eq!(exit_code(&exists), 1, "{tool}");
        let refuse =
            "CREATE TRIGGER refuse BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END";
        vault.execute_batch(refuse).unwrap();
        let before = rows(&vault).len();
        let answer = call(format!("touch {}", file.display()));
        assert_eq!(answer.rpc()["error"]["code"], -32603, "{tool}");
        until_nothing_is_left(&server);
        assert_eq!(rows(&vault).len(), before, "{tool}: no outcome either");
        vault.execute_batch("DROP TRIGGER refuse").unwrap();
        assert_eq!(exit_code(&exists), 1, "{tool}: it never ran");
        assert_eq!(exit_code("true"), 0, "{tool}");
    }
}

/// Returns the bytes of a request that is held.
fn held(operation: &Value) -> Vec<u8> {
    let mut request = request(operation);
    request["held"] = json!(true);
    frame(request.to_string())
}

/// Returns the bytes of a release.
fn release(payload: &Value) -> Vec<u8> {
    let mut bytes = frame(payload.to_string());
    bytes[0] = 7;
    bytes
}

#[test]
fn the_helper_runs_a_held_command_after_its_release_alone() {
    let attacked = AttackedHelper::new(HOST_SHELL);
    let mut stream = attacked.helper.connect();
    stream.write_all(&held(&attacked.trace())).unwrap();
    sleep(QUIET);
    assert!(!attacked.canary.exists());
    let head = json!({ "audit": { "seq": 41, "sha256": "0a".repeat(32) } });
    stream.write_all(&release(&head)).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains(r#"{"exited":{"code":0}}"#), "{answer}");
    assert!(attacked.canary.exists());
    let log = attacked.log();
    assert!(log.contains("audit_seq=41"), "{log}");
}

#[test]
fn nothing_but_a_release_lets_a_held_command_run() {
    let attacked = AttackedHelper::new(HOST_SHELL);
    let good = release(&json!({}));
    for bytes in [
        Vec::new(),
        good[..3].to_vec(),
        [good.clone(), good.clone()].concat(),
        release(&json!({ "audit": 1 })),
        release(&json!({ "held": false })),
        held(&attacked.trace()),
        vec![0xff; 64],
    ] {
        let mut stream = attacked.helper.connect();
        stream.write_all(&held(&attacked.trace())).unwrap();
        // The bytes arrive when the command is prepared. The helper may have closed the connection at a wrong one.
        sleep(QUIET);
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(!answer.contains("exited"), "{bytes:?}: {answer}");
        assert!(!attacked.canary.exists(), "{bytes:?}");
    }
    // A release with the request is not accepted either: whoever sends it cannot have seen that it was accepted.
    let both = [held(&attacked.trace()), good].concat();
    let answer = attacked.send(&both);
    assert!(!String::from_utf8_lossy(&answer).contains("exited"));
    assert!(!attacked.canary.exists() && attacked.serves());
}

#[test]
fn only_commands_can_be_held() {
    let attacked = AttackedHelper::new(HOST_SHELL);
    for operation in everything(&attacked.trace()) {
        let operation_name = operation["do"].as_str().unwrap();
        if matches!(operation_name, "host_command" | "container_command") {
            continue;
        }
        let answer = attacked.send(&held(&operation));
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(
            answer.contains("only a command can be held"),
            "{operation}: {answer}"
        );
    }
    attacked.assert_unharmed();
}
