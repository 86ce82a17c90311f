//! A second reader of the state's log, which shares no code with the first: which revision changed which value.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};

/// The log, replayed from its beginning.
pub struct History {
    path: PathBuf,
    pub document: Value,
    pub revision: u64,
    /// For each pointer, the revisions that changed its value.
    changed: BTreeMap<String, BTreeSet<u64>>,
}

impl History {
    /// Reads the database at this path, and tracks these pointers.
    pub fn new(path: &Path, pointers: impl IntoIterator<Item = String>) -> Self {
        Self {
            path: path.to_owned(),
            document: json!({ "public": {} }),
            revision: 0,
            changed: pointers
                .into_iter()
                .map(|at| (at, BTreeSet::new()))
                .collect(),
        }
    }

    /// Reads the revisions written since the last call.
    pub fn read_on(&mut self) {
        let connection = connect(&self.path);
        let mut rows = connection
            .prepare("SELECT id, patch FROM revision WHERE id > ?1 ORDER BY id")
            .unwrap();
        let mut rows = rows.query([i64::try_from(self.revision).unwrap()]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let id = u64::try_from(row.get::<_, i64>(0).unwrap()).unwrap();
            assert_eq!(id, self.revision + 1, "the log has no gaps");
            self.revision = id;
            let patch: Value = serde_json::from_str(&row.get::<_, String>(1).unwrap()).unwrap();
            let mut next = self.document.clone();
            if apply(&mut next, &patch).is_none() {
                continue;
            }
            for (pointer, revisions) in &mut self.changed {
                if next.pointer(pointer) != self.document.pointer(pointer) {
                    revisions.insert(id);
                }
            }
            self.document = next;
        }
    }

    /// Returns the newest revision that changed the value at this pointer.
    pub fn newest(&self, pointer: &str) -> u64 {
        self.changed[pointer].last().copied().unwrap_or(0)
    }

    /// Returns whether this revision changed the value at this pointer.
    pub fn changed(&self, pointer: &str, revision: u64) -> bool {
        self.changed[pointer].contains(&revision)
    }
}

/// Opens a connection as another program would.
pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::from_mins(1)).unwrap();
    connection
}

/// Writes a revision as another program would.
pub fn insert(connection: &Connection, patch: &Value) {
    connection
        .execute(
            "INSERT INTO revision (at_ms, actor, patch) VALUES (1, 'local:test', ?1)",
            [patch.to_string()],
        )
        .unwrap();
}

/// Applies RFC 6902 without `move` and `copy`; `None` for a patch that does not apply.
fn apply(document: &mut Value, patch: &Value) -> Option<()> {
    for operation in patch.as_array()? {
        let at = operation["path"].as_str()?;
        let value = operation.get("value");
        match operation["op"].as_str()? {
            "test" if document.pointer(at) == value => {}
            "add" => add(document, at, value?.clone())?,
            "replace" => *document.pointer_mut(at)? = value?.clone(),
            "remove" => remove(document, at)?,
            _ => return None,
        }
    }
    Some(())
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    let (parent, key) = path.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(map) => drop(map.insert(unescaped(key), value)),
        Value::Array(list) if key == "-" => list.push(value),
        Value::Array(list) => {
            let at = key.parse().ok().filter(|at| *at <= list.len())?;
            list.insert(at, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<()> {
    let (parent, key) = path.rsplit_once('/')?;
    match document.pointer_mut(parent)? {
        Value::Object(map) => map.remove(&unescaped(key)).map(drop),
        Value::Array(list) => {
            let at = key.parse().ok().filter(|at| *at < list.len())?;
            list.remove(at);
            Some(())
        }
        _ => None,
    }
}

fn unescaped(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}
