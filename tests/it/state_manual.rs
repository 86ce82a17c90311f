//! What the man page of the state database says is so: its schema, its examples, its commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::machine::{skip, wait_until};
use crate::support::server::{Directory, Server, has_sqlite3, server, shared};

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/man/gatewren-state.5")
}

fn source() -> String {
    std::fs::read_to_string(page()).unwrap()
}

/// The literal text after the comment `example: <name>`, as a reader would copy it.
fn example(name: &str) -> String {
    let source = source();
    let (_, rest) = source
        .split_once(&format!(".\\\" example: {name}\n"))
        .unwrap_or_else(|| panic!("there is no example {name}"));
    let (_, rest) = rest.split_once('\n').unwrap();
    let (text, _) = rest.split_once("\n.Ed").unwrap();
    [
        ("\\-", "-"),
        ("\\(aq", "'"),
        ("\\(ga", "`"),
        ("\\(ha", "^"),
        ("\\(ti", "~"),
        ("\\&", ""),
        ("\\e", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (roff, plain)| {
        text.replace(roff, plain)
    })
}

/// What a database says its schema is, by name, without regard to how lines are broken.
fn schema(database: &Connection) -> BTreeMap<String, String> {
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL";
    let mut rows = database.prepare(sql).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)));
    let words = |sql: String| sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = rows.unwrap().map(Result::unwrap);
    rows.map(|(name, sql)| (name, words(sql))).collect()
}

/// Runs an example as a shell script whose first argument is the database.
fn run(server: &Server, script: &str) {
    let database = server.text("state_db");
    let directory = Path::new(database).parent().unwrap();
    let gatewren = r#"gatewren() { "$GATEWREN" "$@" --dir "$DIRECTORY"; }"#;
    let output = Command::new("bash")
        .args([
            "-euc",
            &format!("{gatewren}\n{script}"),
            "example",
            database,
        ])
        .env("GATEWREN", env!("CARGO_BIN_EXE_gatewren"))
        .env("DIRECTORY", directory)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && error.is_empty(),
        "{script}\n{error}"
    );
}

/// The newest revision that touches a place, as `log` tells it.
fn newest(server: &Server, place: &str) -> Value {
    let directory = Path::new(server.text("state_db")).parent().unwrap();
    let mut log = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    log.args(["state", "log", place, "--limit", "1", "--json", "--dir"]);
    let output = log.arg(directory).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_schema_in_the_man_page_is_that_of_the_database() {
    let server = shared("operate");
    let real = Connection::open(server.text("state_db")).unwrap();
    let told = Connection::open_in_memory().unwrap();
    told.execute_batch(&example("schema")).unwrap();
    assert_eq!(schema(&told), schema(&real));
}

#[test]
fn the_examples_in_the_man_page_write_what_they_say() {
    if !has_sqlite3() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("there is no program python3");
    }
    let home = Directory::new();
    let script = home.join("backup.py");
    std::fs::write(&script, example("python")).unwrap();
    let server = server().start();
    let python = format!("python3 {} \"$1\" > /dev/null", script.display());
    let patch = format!("{{ {}; }} > /dev/null", example("patch"));
    for (script, actor, place) in [
        (python, "local:backup", "/public/backup"),
        (example("shell"), "local:me", "/public/notes"),
        (patch, "local:doorbell", "/public/door"),
    ] {
        run(&server, &script);
        let row = newest(&server, place);
        assert_eq!(row["actor"], actor, "{row}");
        assert_eq!(row["patch"][0]["path"], place, "{row}");
        assert!(row.get("refused").is_none(), "{row}");
    }
    let mut check = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    let directory = Path::new(server.text("state_db")).parent().unwrap();
    check.args(["state", "check", "--dir"]).arg(directory);
    assert!(check.output().unwrap().status.success());
}

#[test]
fn the_man_page_names_every_command_and_every_part_of_the_document() {
    let help = Command::new(env!("CARGO_BIN_EXE_gatewren"))
        .args(["state", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, rest) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = rest.split_once("\n\n").unwrap();
    let commands = commands.lines().filter(|line| !line.starts_with("    "));
    let names = commands.map(|line| line.split_whitespace().next().unwrap());
    let source = source();
    for name in names.filter(|name| *name != "help") {
        let entry = format!(".It Nm gatewren state {name}");
        assert!(source.contains(&entry), "`{name}` is not in the man page");
    }

    let server = server().start();
    let read = || server.client().call("state_get", json!({})).send().data();
    wait_until("the host is seen", Duration::from_mins(2), || {
        read()["value"].get("serverInfo").is_some()
    });
    for part in read()["value"].as_object().unwrap().keys() {
        let entry = format!(".It Li /public/{part}");
        assert!(
            source.contains(&entry),
            "/public/{part} is not in the man page"
        );
    }
}

#[test]
fn the_man_page_is_written_well() {
    let checks: [&[&str]; 2] = [
        &["mandoc", "-T", "lint", "-W", "warning"],
        &["groff", "-ww", "-mdoc", "-T", "utf8", "-z"],
    ];
    let output = checks.iter().find_map(|words| {
        let mut check = Command::new(words[0]);
        check.args(&words[1..]).arg(page()).output().ok()
    });
    let Some(output) = output else {
        return skip("there is neither mandoc nor groff");
    };
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
