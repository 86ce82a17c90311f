//! What a person sees at a terminal: short, in its width, with colors, and without secrets in command lines.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::command::{add_agent, refused, tell, words};
use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::server::{Directory, server};
use crate::support::terminal::{Terminal, widest, without_colors};

const NO_SCRIPT: &str = "there is no script(1)";

/// Runs a command about this directory on a terminal of 80 columns; returns its text.
fn shown(directory: &Path, env: &[(&str, &str)], words: &[&str]) -> Option<String> {
    let directory = directory.to_str().unwrap();
    let words = [words, &["--dir", directory]].concat();
    Some(Terminal::start(80, env, &words)?.end().0)
}

#[test]
fn a_trial_says_what_to_do_without_log_lines_and_secrets() {
    let home = Directory::new();
    let directory = home.0.to_str().unwrap();
    let words = ["try", "--listen", "127.0.0.1:0", "--dir", directory];
    let Some(trial) = Terminal::start(80, &[], &words) else {
        return skip(NO_SCRIPT);
    };
    wait_until("it serves", IN_TIME, || {
        trial.text().contains("The state is kept in")
    });
    let text = trial.text();
    let token = fs::read_to_string(home.join("token-operate")).unwrap();
    assert!(!text.contains("INFO") && !text.contains("gw_"), "{text}");
    assert!(text.contains("\u{1b}[1mhttps://localhost:"), "{text}");
    let places = ["Owner's page", "MCP address", "claude mcp add", "Then ask:"];
    let places = places.map(|words| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}: {text}"))
    });
    assert!(places.is_sorted(), "{text}");
    assert!(widest(&text) <= 80, "{text}");

    // The lines to paste, run with a client that prints its arguments.
    let text = without_colors(&text);
    let (_, lines) = text.split_once("another terminal):\n").unwrap();
    let (lines, rest) = lines.split_once("Another client:\n").unwrap();
    let script =
        format!("claude() {{ printf '%s\\n' \"$@\"; cat \"$NODE_EXTRA_CA_CERTS\"; }}\n{lines}");
    let pasted = Command::new("bash").args(["-c", &script]).output().unwrap();
    let pasted = String::from_utf8(pasted.stdout).unwrap();
    let header = format!("--header\nAuthorization: Bearer {}\n", token.trim());
    assert!(pasted.contains(&header), "{pasted}");
    assert!(pasted.contains("BEGIN CERTIFICATE"), "{pasted}");
    let other = rest.lines().next().unwrap().trim();
    let mut other = other.split_whitespace().skip(1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = command.args(other.by_ref()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    trial.interrupt();
}

#[test]
fn a_level_that_was_set_is_kept_and_no_color_is_obeyed() {
    let home = Directory::new();
    let directory = home.0.to_str().unwrap();
    let words = [
        "try",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "info",
        "--dir",
        directory,
    ];
    let Some(trial) = Terminal::start(80, &[("NO_COLOR", "1")], &words) else {
        return skip(NO_SCRIPT);
    };
    wait_until("it serves", IN_TIME, || {
        trial.text().contains("The state is kept in")
    });
    let text = trial.interrupt();
    assert!(
        text.contains("INFO") && !text.contains('\u{1b}'),
        "{text:?}"
    );
}

#[test]
fn lists_fit_80_columns_and_what_they_show_is_accepted() {
    let home = Directory::new();
    let server = server().directory(&home.0).start();
    let proposed = server
        .client()
        .call("system_shell", json!({ "command": "true" }))
        .send();
    assert_eq!(proposed.status, 200, "{proposed:?}");
    let piped = words(&home.0, &["inbox", "list"]);
    assert!(piped.contains("Z  try"), "{piped}");
    let Some(inbox) = shown(&home.0, &[], &["inbox", "list"]) else {
        return skip(NO_SCRIPT);
    };
    assert!(inbox.contains("\u{1b}[33mpending"), "{inbox}");
    let inbox = without_colors(&inbox);
    assert!(
        widest(&inbox) <= 80 && inbox.contains("{\"command\":\"true\"}"),
        "{inbox}"
    );
    assert!(
        inbox.contains(" ago  ") || inbox.contains("  now  "),
        "{inbox}"
    );
    let id = inbox.lines().nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(id.len(), "chg_01234567".len(), "{inbox}");
    let found = tell(&home.0, &["inbox", "show", id]).0;
    assert!(found["id"].as_str().unwrap().starts_with(id), "{found}");
    let long = "an-agent-with-a-rather-long-name-that-does-not-fit";
    add_agent(&home.0, long, &[]);
    let piped = words(&home.0, &["audit", "list"]);
    assert!(!piped.contains('…') && piped.contains(long), "{piped}");
    for list in [["agent", "list"], ["audit", "list"], ["inbox", "list"]] {
        let text = shown(&home.0, &[], &list).unwrap();
        assert!(widest(&text) <= 80, "{list:?}: {text}");
    }
}

#[test]
fn agent_add_prints_how_to_connect() {
    let home = Directory::new();
    let _server = server().directory(&home.0).start();
    let Some(text) = shown(&home.0, &[], &["agent", "add", "laptop"]) else {
        return skip(NO_SCRIPT);
    };
    let (_, hint) = text
        .trim_end()
        .rsplit_once("Connect it: gatewren ")
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = command.args(hint.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{hint}: {output:?}");
    let piped = words(&home.0, &["agent", "add", "phone"]);
    assert!(
        piped.split_whitespace().last().unwrap().starts_with("gw_"),
        "{piped}"
    );
    let again = refused(&home.0, &["agent", "add", "laptop"]);
    assert!(again.contains("laptop"), "{again}");
}

#[test]
fn findings_have_colors_and_a_new_server_need_not_have_a_backup() {
    let home = Directory::new();
    let _server = server().directory(&home.0).start();
    let doctor = ["doctor", "--no-self-test"];
    let Some(text) = shown(&home.0, &[], &doctor) else {
        return skip(NO_SCRIPT);
    };
    assert!(text.contains("\u{1b}[32mok "), "{text}");
    for off in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let text = shown(&home.0, &[off], &doctor).unwrap();
        assert!(text.contains("ok ") && !text.contains('\u{1b}'), "{text:?}");
    }
    let found = tell(&home.0, &["doctor", "--no-self-test"]).0;
    let all = found["findings"].as_array().unwrap();
    let backups = all.iter().find(|one| one["check"] == "backups").unwrap();
    assert!(
        ["later", "skipped"].contains(&backups["state"].as_str().unwrap()),
        "{backups}"
    );
    let status = shown(&home.0, &[], &["status"]).unwrap();
    assert!(
        status.contains("\u{1b}[32mserves\u{1b}[0m MCP at"),
        "{status}"
    );
}

#[test]
fn status_without_a_service_says_how_to_begin() {
    if ["/etc/gatewren/gatewren.toml", "/var/lib/gatewren"]
        .iter()
        .any(|path| Path::new(path).exists())
    {
        return skip("gatewren is installed here");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let output = command.arg("status").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("gatewren is not set up on this box yet."),
        "{text}"
    );
    assert!(
        text.contains("gatewren try") && text.contains("sudo gatewren init"),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(3));
}
