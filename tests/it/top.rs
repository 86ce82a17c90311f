//! `gatewren top`: what runs, waits and has ended, on a terminal and without one.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::command::{add_agent, tell, words};
use crate::support::machine::{IN_TIME, marker, wait_until};
use crate::support::server::{Directory, server};

fn top(directory: &Path) -> Value {
    tell(directory, &["top"]).0
}

#[test]
fn calls_are_seen_while_they_run_and_when_they_have_ended() {
    let home = Directory::new();
    let server = server().policy("admin").directory(&home.0).start();
    let client = server.client();
    let sleep = marker();
    let command = format!("sleep {sleep}");
    let running = client
        .call("system_shell", json!({ "command": command }))
        .begin();
    let mut seen = Value::Null;
    wait_until("it runs", IN_TIME, || {
        seen = top(&home.0);
        seen["running"][0]["tool"] == "system_shell"
    });
    assert_eq!(seen["running"][0]["agent_name"], "try", "{seen}");
    let page = words(&home.0, &["top"]);
    assert!(page.contains("1 running, 0 waiting"), "{page}");
    assert!(
        page.contains("RUNNING\n") && page.contains("system_shell"),
        "{page}"
    );
    drop(running);
    wait_until("it has ended", IN_TIME, || {
        seen = top(&home.0);
        seen["running"].as_array().unwrap().is_empty()
    });
    assert_eq!(seen["ended"][0]["outcome"], "cancelled", "{seen}");
    assert_eq!(seen["last_minute"]["failed"], 1, "{seen}");

    let agent = add_agent(&home.0, "suggester", &["--policy", "operate"]);
    let proposing = client.with_token(agent["token"].as_str().unwrap());
    wait_until("it comes in", IN_TIME, || {
        proposing.modern("tools/list").send().status == 200
    });
    let proposed = proposing
        .call("system_shell", json!({ "command": "true" }))
        .send();
    assert_eq!(proposed.status, 200, "{proposed:?}");
    wait_until("it waits", IN_TIME, || {
        seen = top(&home.0);
        seen["waiting_count"] == 1
    });
    assert_eq!(seen["waiting"][0]["agent_name"], "suggester", "{seen}");
    let page = words(&home.0, &["top", "--once"]);
    assert!(page.contains("WAITING FOR THE OWNER"), "{page}");
    assert!(!page.contains('\u{1b}'), "{page}");
    drop(server);
    assert_eq!(top(&home.0)["running"], json!([]));
}

/// `script` gives a program a terminal.
fn in_terminal(directory: &Path, typescript: &Path) -> Option<Child> {
    let program = env!("CARGO_BIN_EXE_gatewren");
    let line = format!(
        "stty rows 20 cols 60; exec {program} top --dir {}",
        directory.display()
    );
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-f", "-c", &line]).arg(typescript);
    script.stdin(Stdio::piped()).stdout(Stdio::null());
    script.spawn().ok()
}

#[test]
fn the_key_q_ends_it_and_no_other_key_does() {
    let home = Directory::new();
    let _server = server().directory(&home.0).start();
    let typescript = home.join("typescript");
    let Some(mut script) = in_terminal(&home.0, &typescript) else {
        crate::support::machine::skip("there is no script(1)");
        return;
    };
    let drawn = || std::fs::read_to_string(&typescript).unwrap_or_default();
    wait_until("it draws", IN_TIME, || drawn().contains("\u{1b}[?1049h"));
    let mut keys = script.stdin.take().unwrap();
    keys.write_all(b"x\n").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(script.try_wait().unwrap(), None);
    keys.write_all(b"q").unwrap();
    wait_until("it ends", IN_TIME, || script.try_wait().unwrap().is_some());
    assert_eq!(script.wait().unwrap().code(), Some(0));
    assert!(drawn().contains("\u{1b}[?1049l"), "{:?}", drawn());
}

#[test]
fn a_terminal_is_drawn_on_and_given_back() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    assert_eq!(server.client().call("whoami", json!({})).send().status, 200);
    let typescript = home.join("typescript");
    let Some(mut script) = in_terminal(&home.0, &typescript) else {
        crate::support::machine::skip("there is no script(1)");
        return;
    };
    let drawn = || {
        let mut text = String::new();
        if let Ok(mut file) = File::open(&typescript) {
            file.read_to_string(&mut text).unwrap();
        }
        text
    };
    // The audit row of a read-only call is written a moment after the call.
    wait_until("it draws the call", IN_TIME, || drawn().contains("whoami"));
    let text = drawn();
    assert!(text.contains("\u{1b}[?1049h"), "{text:?}");
    for line in text.split(['\n', '\r']) {
        let bare = line
            .replace("\u{1b}[K", "")
            .replace("\u{1b}[J", "")
            .replace("\u{1b}[H", "");
        let bare = bare.replace("\u{1b}[?1049h", "").replace("\u{1b}[?25l", "");
        assert!(
            bare.starts_with("Script ") || bare.chars().count() <= 60,
            "{bare:?}"
        );
    }
    let children = format!("/proc/{0}/task/{0}/children", script.id());
    let child = std::fs::read_to_string(children).unwrap();
    let child: i32 = child.split_whitespace().next().unwrap().parse().unwrap();
    kill(Pid::from_raw(child), Signal::SIGINT).unwrap();
    wait_until("it ends", IN_TIME, || {
        std::thread::sleep(Duration::from_millis(20));
        script.try_wait().unwrap().is_some()
    });
    assert_eq!(script.wait().unwrap().code(), Some(0));
    assert!(drawn().contains("\u{1b}[?1049l"), "{:?}", drawn());
}
