//! The man page of the state database is correct: its schema, its examples, its commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::json;

use crate::support::machine::{IN_TIME, skip, wait_until};
use crate::support::manual::Manual;
use crate::support::server::{Directory, Server, has_sqlite3, server, shared};
use crate::support::state::{said, told};

fn page() -> Manual {
    Manual::named("gatewren-state.5")
}

fn example(name: &str) -> String {
    page().example(name)
}

/// Returns a database's schema by name, regardless of line breaks.
fn schema(database: &Connection) -> BTreeMap<String, String> {
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL";
    let mut rows = database.prepare(sql).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)));
    let words = |sql: String| sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let rows = rows.unwrap().map(Result::unwrap);
    rows.map(|(name, sql)| (name, words(sql))).collect()
}

/// Runs an example as a shell script with the database as its first argument.
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
        let row = told(&server, &["log", place, "--limit", "1"]);
        assert_eq!(row["actor"], actor, "{row}");
        assert_eq!(row["patch"][0]["path"], place, "{row}");
        assert!(row.get("refused").is_none(), "{row}");
    }
    said(&server, &["check"]);
}

#[test]
fn the_man_page_names_every_command_and_every_part_of_the_document() {
    Manual::named("gatewren-state.1").names_every_command("state");
    let source = page().source;
    let server = server().start();
    let read = || server.client().call("state_get", json!({})).send().data();
    wait_until("the host is seen", IN_TIME, || {
        read()["value"].get("serverInfo").is_some()
    });
    let document = read()["value"].clone();
    for part in document.as_object().unwrap().keys() {
        let entry = format!(".It Li /public/{part}");
        assert!(
            source.contains(&entry),
            "/public/{part} is not in the man page"
        );
    }
    for fact in document["serverInfo"].as_object().unwrap().keys() {
        let entry = format!(".Li {fact} ");
        assert!(
            source.contains(&entry),
            "/public/serverInfo/{fact} is not in the man page"
        );
    }
}

#[test]
fn the_man_page_is_written_well() {
    page().is_written_well();
}
