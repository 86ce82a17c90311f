//! Helpers shared by the tests of this module: a database with a history, and another program that writes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use gatewren_base::sys::Scratch;

use super::pointer::Pointer;
use super::store::State;

/// Creates a new database and closes it.
pub fn database(scratch: &Scratch) -> PathBuf {
    let path = scratch.join("state.db");
    drop(State::open(&path).unwrap());
    path
}

/// Parses a pointer.
pub fn at(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

/// Opens another program's connection.
pub fn foreign(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_mins(1)).unwrap();
    connection
}

/// Inserts another program's revision, with the explicit id that is needed where the log may be empty.
pub fn insert(connection: &Connection, actor: &str, patch: &Value) {
    let sql = "INSERT INTO revision (id, at_ms, actor, cause, patch) VALUES (
        1 + max(coalesce((SELECT max(id) FROM revision), 0), (SELECT max(revision) FROM snapshot)),
        7, ?1, 'why', ?2)";
    connection.execute(sql, (actor, patch.to_string())).unwrap();
}

/// Inserts another program's revision that adds a value.
pub fn add(connection: &Connection, place: &str, value: &Value) {
    let patch = json!([{ "op": "add", "path": place, "value": value }]);
    insert(connection, "local:test", &patch);
}

/// Makes the log begin after `revision`, whose document is `document`, as a compaction would.
pub fn trim(connection: &Connection, revision: u64, document: &Value) {
    without_rules(connection);
    let revision = i64::try_from(revision).unwrap();
    connection
        .execute("DELETE FROM snapshot", [])
        .and_then(|_| {
            let snapshot = "INSERT INTO snapshot VALUES (?1, ?2)";
            connection.execute(snapshot, (revision, document.to_string()))
        })
        .and_then(|_| connection.execute("DELETE FROM revision WHERE id <= ?1", [revision]))
        .unwrap();
}

/// Drops the triggers that protect the log from deletion; the order of the numbers is still enforced.
pub fn without_rules(connection: &Connection) {
    for rule in [
        "revision_is_trimmed_from_the_oldest",
        "snapshot_is_trimmed_from_the_oldest",
    ] {
        let drop = format!("DROP TRIGGER IF EXISTS {rule}");
        connection.execute(&drop, []).unwrap();
    }
}
