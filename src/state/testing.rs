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
