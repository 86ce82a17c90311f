//! A server that cannot start reports why, with what to do, in a sentence, and the kind of failure in its exit code.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::machine::{is_root, skip};
use crate::support::server::{Directory, has_sqlite3, server};

/// SQLite's page size, in both databases.
const PAGE: usize = 4096;

fn run(args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    // The timeout ends a server that starts although it should not.
    let mut bounded = Command::new("timeout");
    bounded.arg("120").arg(command.get_program());
    command = bounded;
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("NOTIFY_SOCKET");
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&stdout), "");
    let words = String::from_utf8_lossy(&stderr).into_owned();
    assert!(!words.contains("panicked") && !words.is_empty(), "{words}");
    (status.code(), words)
}

fn try_in(directory: &Path) -> (Option<i32>, String) {
    let directory = directory.to_str().unwrap();
    run(&[
        "try",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--dir",
        directory,
    ])
}

#[test]
fn a_port_that_is_in_use_is_named() {
    let home = Directory::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, words) = run(&[
        "try",
        "--listen",
        &address,
        "--dir",
        home.0.to_str().unwrap(),
    ]);
    assert_eq!(code, Some(1), "{words}");
    assert!(
        words.contains(&address) && words.contains("--listen"),
        "{words}"
    );
}

#[test]
fn an_address_that_is_not_the_boxs_own_is_named() {
    let home = Directory::new();
    let (code, words) = run(&[
        "try",
        "--listen",
        "203.0.113.7:0",
        "--dir",
        home.0.to_str().unwrap(),
    ]);
    assert_eq!(code, Some(1), "{words}");
    assert!(
        words.contains("203.0.113.7") && words.contains("--listen"),
        "{words}"
    );
}

/// Returns a directory with both databases, one of them changed by this statement.
fn changed(database: &str, sql: &str) -> Directory {
    let home = Directory::new();
    drop(server().directory(&home.0).start());
    let output = Command::new("sqlite3")
        .arg(home.join(database))
        .arg(sql)
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    home
}

#[test]
fn databases_of_a_newer_version_are_left_alone_and_named() {
    if !has_sqlite3() {
        return;
    }
    for (database, sql) in [
        (
            "state.db",
            "UPDATE meta SET value = '99' WHERE key = 'schema'",
        ),
        ("vault.db", "PRAGMA user_version = 99"),
    ] {
        let home = changed(database, sql);
        let (code, words) = try_in(&home.0);
        assert_eq!(code, Some(1), "{words}");
        assert!(
            words.contains(database) && words.contains("newer"),
            "{words}"
        );
        let (_, again) = try_in(&home.0);
        assert!(again.contains("newer"), "it was not touched: {again}");
    }
}

/// Returns a directory with both databases, one of them damaged after its first page.
fn damaged(database: &str) -> Directory {
    let home = Directory::new();
    let mut before = server().directory(&home.0).start();
    before.client().call("whoami", json!({})).send().data();
    before.signal(Signal::SIGTERM);
    before.ended();
    // The last connection that closes writes the WAL back to the database.
    let file = home.join(database);
    let shell = Command::new("sqlite3")
        .arg(file)
        .arg("PRAGMA wal_checkpoint(TRUNCATE)")
        .output();
    assert!(shell.unwrap().status.success());
    let mut bytes = fs::read(home.join(database)).unwrap();
    assert!(bytes.len() > 3 * PAGE, "it was written back from the log");
    bytes[PAGE..].fill(b'x');
    fs::write(home.join(database), bytes).unwrap();
    home
}

#[test]
fn a_state_that_is_damaged_is_moved_aside_and_made_anew() {
    if !has_sqlite3() {
        return;
    }
    let home = damaged("state.db");
    let again = server().directory(&home.0).start();
    assert!(again.log().contains("damaged"), "{}", again.log());
    assert_eq!(
        again.client().call("state_get", json!({})).send().verdict(),
        (200, 0)
    );
    let names = fs::read_dir(&home.0)
        .unwrap()
        .map(|e| e.unwrap().file_name());
    let mut names = names.map(|name| name.to_string_lossy().into_owned());
    assert!(names.any(|name| name.starts_with("state.db.damaged")));
}

#[test]
fn a_vault_that_is_damaged_stops_the_start_and_is_left_as_it_is() {
    if !has_sqlite3() {
        return;
    }
    let home = damaged("vault.db");
    let before = fs::read(home.join("vault.db")).unwrap();
    let (code, words) = try_in(&home.0);
    assert_eq!(code, Some(1), "{words}");
    assert!(
        words.contains("vault.db") && words.contains("damaged"),
        "{words}"
    );
    assert_eq!(fs::read(home.join("vault.db")).unwrap(), before);
}

#[test]
fn a_directory_that_is_a_file_is_named() {
    let home = Directory::new();
    let file = home.join("file");
    fs::write(&file, "").unwrap();
    let (code, words) = try_in(&file);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains(file.to_str().unwrap()), "{words}");
}

#[test]
fn a_directory_that_cannot_be_read_is_named() {
    if is_root() {
        return skip("root can read every directory");
    }
    let home = Directory::new();
    fs::set_permissions(&home.0, fs::Permissions::from_mode(0o000)).unwrap();
    let (code, words) = try_in(&home.join("inside"));
    fs::set_permissions(&home.0, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains(home.0.to_str().unwrap()), "{words}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let (code, words) = try_in(Path::new("/proc/gatewren-it"));
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("/proc/gatewren-it"), "{words}");
}

#[test]
fn settings_that_are_wrong_are_named_with_their_line_and_are_exit_code_2() {
    let home = Directory::new();
    let file = home.join("gatewren.toml");
    for (text, words) in [
        ("listen = 5\n", ["listen", ":1:"]),
        ("\n[limits]\nagent_rat = 5\n", ["agent_rat", "agent_rate"]),
        ("\n\n[limits]\ndrain = \"5 weeks\"\n", ["drain", ":4:"]),
        ("[tls\n", ["TOML", ":1:"]),
    ] {
        fs::write(&file, text).unwrap();
        let (code, said) = run(&["serve", "--config", file.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{text:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{text:?}: {said}");
        }
    }
}

#[test]
fn a_word_that_is_no_policy_is_refused_with_those_that_are() {
    let (code, words) = run(&["try", "--policy", "root"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(
        words.contains("operate") && words.contains("observe"),
        "{words}"
    );
}
