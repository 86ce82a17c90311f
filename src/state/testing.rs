//! What the tests of this room share: a database with a history, and another program that writes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::sys::Scratch;

use super::pointer::Pointer;
use super::store::State;

/// A new database, closed.
pub fn database(scratch: &Scratch) -> PathBuf {
    let path = scratch.join("state.db");
    drop(State::open(&path).unwrap());
    path
}

/// A pointer.
pub fn at(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

/// Another program's connection.
pub fn foreign(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_mins(1)).unwrap();
    connection
}

/// Another program's revision.
pub fn insert(connection: &Connection, actor: &str, patch: &Value) {
    let sql = "INSERT INTO revision (at_ms, actor, cause, patch) VALUES (7, ?1, 'why', ?2)";
    connection.execute(sql, (actor, patch.to_string())).unwrap();
}

/// Another program's revision that puts a value somewhere.
pub fn add(connection: &Connection, place: &str, value: &Value) {
    let patch = json!([{ "op": "add", "path": place, "value": value }]);
    insert(connection, "local:test", &patch);
}

/// Makes the log begin after `revision`, of which `document` is the document, as a compaction would.
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

/// Takes the rules away that keep a program from doing damage; the numbers stay in order.
pub fn without_rules(connection: &Connection) {
    for rule in [
        "revision_is_trimmed_from_the_oldest",
        "snapshot_is_trimmed_from_the_oldest",
    ] {
        let drop = format!("DROP TRIGGER IF EXISTS {rule}");
        connection.execute(&drop, []).unwrap();
    }
}
