//! The exact arguments of calls: encrypted to the owner's key, and decrypted only with the owner's password.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::server::{Directory, Server, server};

const FIRST: &str = "four words of mine";
const SECOND: &str = "other words of mine";

/// Runs `gatewren` on a state directory, with lines on standard input.
fn gatewren(directory: &Path, words: &[&str], lines: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(words)
        .arg("--dir")
        .arg(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for line in lines {
        // A process that needs fewer lines may have exited.
        let _ = writeln!(input, "{line}");
    }
    drop(input);
    child.wait_with_output().unwrap()
}

fn set_password(directory: &Path, words: &[&str], lines: &[&str]) -> Output {
    let words = [&["owner", "set-password", "--json"], words].concat();
    gatewren(directory, &words, lines)
}

fn is_set(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns a call from `audit show --exact`, or its error.
fn shown(directory: &Path, call: &str, password: &str) -> Result<Value, String> {
    let words = ["audit", "show", call, "--exact", "--json"];
    let output = gatewren(directory, &words, &[password]);
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    assert_eq!(output.status.code(), Some(1));
    Err(String::from_utf8(output.stderr).unwrap())
}

/// Runs a command hidden behind the name of a secret, and returns the call's id.
fn run_hidden(server: &Server, directory: &Path, payload: &str) -> String {
    let call = server.client().call("system_shell", hidden(payload));
    assert_eq!(call.send().data()["stdout"], "taken\n");
    let words = [
        "audit",
        "list",
        "--tool",
        "system_shell",
        "--limit",
        "1",
        "--json",
    ];
    let listed = gatewren(directory, &words, &[]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert!(
        !listed["arguments"].to_string().contains(payload),
        "{listed}"
    );
    listed["call"].as_str().unwrap().to_owned()
}

fn hidden(payload: &str) -> Value {
    json!({ "command": "eval \"$DB_PASSWORD\"", "env": { "DB_PASSWORD": payload } })
}

#[test]
fn what_ran_behind_the_name_of_a_secret_is_told_exactly_to_who_has_the_password() {
    let home = Directory::new();
    let directory = home.join("state");
    let server = server().policy("admin").directory(&directory).start();
    let before = run_hidden(&server, &directory, "echo taken");
    let refused = shown(&directory, &before, "").unwrap_err();
    assert!(refused.contains("no owner key"), "{refused}");
    is_set(&set_password(&directory, &[], &[FIRST]));

    let call = run_hidden(&server, &directory, "echo   taken");
    let told = shown(&directory, &call, FIRST).unwrap();
    assert_eq!(told["exact_arguments"], hidden("echo   taken"));
    assert_eq!(told["exact"], "sealed");
    let wrong = shown(&directory, &call, SECOND).unwrap_err();
    assert!(wrong.contains("this password does not decrypt"), "{wrong}");
    let words = gatewren(&directory, &["audit", "show", &call, "--exact"], &[FIRST]);
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(
        words.contains("exact arguments:\n") && words.contains("\"echo   taken\""),
        "{words}"
    );
    let short = gatewren(&directory, &["audit", "show", &call], &[]);
    let short = String::from_utf8(short.stdout).unwrap();
    assert!(
        short.contains("exact      sealed; to open it, run: gatewren audit show"),
        "{short}"
    );
}

#[test]
fn a_new_password_takes_the_key_along_and_a_reset_says_what_it_loses() {
    let home = Directory::new();
    let directory = home.join("state");
    let server = server().policy("admin").directory(&directory).start();
    is_set(&set_password(&directory, &[], &[FIRST]));
    let call = run_hidden(&server, &directory, "echo taken");
    let open = |password| shown(&directory, &call, password).is_ok();

    for (lines, why) in [
        (&[SECOND][..], "the present password was not given"),
        (&[SECOND, "not the one"], "this password does not decrypt"),
    ] {
        let refused = set_password(&directory, &[], lines);
        assert_eq!(refused.status.code(), Some(1));
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(
            error.contains(why) && error.contains("nothing was changed"),
            "{error}"
        );
        assert!(open(FIRST));
    }
    let set = is_set(&set_password(&directory, &[], &[SECOND, FIRST]));
    assert_eq!(set, json!({ "password": "set", "lost": 0 }));
    assert_eq!((open(FIRST), open(SECOND)), (false, true));

    let set = is_set(&set_password(
        &directory,
        &["--reset"],
        &["yet another of mine"],
    ));
    assert_eq!(set["lost"], 1);
    let lost = shown(&directory, &call, "yet another of mine").unwrap_err();
    assert!(
        lost.contains("was lost when the password was reset at 20"),
        "{lost}"
    );
    assert!(
        open(SECOND),
        "the key is kept for who finds its password again"
    );
    let verified = gatewren(&directory, &["audit", "verify"], &[]);
    assert_eq!(verified.status.code(), Some(0));
    let verified = String::from_utf8(verified.stdout).unwrap();
    assert!(
        verified.contains("1 sealed entries cannot be opened: their key "),
        "{verified}"
    );
    let next = run_hidden(&server, &directory, "echo taken");
    assert!(shown(&directory, &next, "yet another of mine").is_ok());
}

#[test]
fn a_key_that_was_taken_away_is_an_error_and_is_not_replaced() {
    let home = Directory::new();
    let directory = home.join("state");
    let server = server().policy("admin").directory(&directory).start();
    is_set(&set_password(&directory, &[], &[FIRST]));
    let call = run_hidden(&server, &directory, "echo taken");
    let vault = rusqlite::Connection::open(directory.join("vault.db")).unwrap();
    vault.execute_batch("DELETE FROM owner_key").unwrap();
    let gone = shown(&directory, &call, FIRST).unwrap_err();
    assert!(
        gone.contains("is missing from the vault or was altered"),
        "{gone}"
    );
    let verified = gatewren(&directory, &["audit", "verify"], &[]);
    assert_eq!(verified.status.code(), Some(3));
    let verified = String::from_utf8(verified.stdout).unwrap();
    assert!(
        verified.contains("is missing from the vault, or was altered"),
        "{verified}"
    );
}
