//! `gatewren state` for a test's server, and its database as another program sees it.

use std::path::Path;
use std::process::Command;

use rusqlite::Connection;
use serde_json::Value;

use super::server::Server;

/// Returns the command, not yet started.
pub fn command(server: &Server, words: &[&str]) -> Command {
    let directory = Path::new(server.text("state_db")).parent().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gatewren"));
    command.arg("state").args(words).arg("--dir").arg(directory);
    command
}

/// Returns its output. It must succeed.
pub fn said(server: &Server, words: &[&str]) -> String {
    let output = command(server, words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns its output with `--json`.
pub fn told(server: &Server, words: &[&str]) -> Value {
    let text = said(server, &[words, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words:?}: no JSON: {text}"))
}

/// Deletes the log up to the revision `base`, as a compaction would; there must be a later one.
pub fn trim(server: &Server, base: u64) {
    let mut database = Connection::open(server.text("state_db")).unwrap();
    database.busy_timeout(super::machine::LONG).unwrap();
    let base = i64::try_from(base).unwrap();
    let transaction = database.transaction().unwrap();
    for id in [base, base + 1] {
        let document = told(server, &["export", "--at", &id.to_string()])["document"].to_string();
        transaction
            .execute("INSERT INTO snapshot VALUES (?1, ?2)", (id, document))
            .unwrap();
    }
    for sql in [
        "DELETE FROM snapshot WHERE revision < ?1",
        "DELETE FROM revision WHERE id <= ?1",
    ] {
        transaction.execute(sql, [base]).unwrap();
    }
    transaction.commit().unwrap();
}
