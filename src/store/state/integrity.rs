//! For tests: a seeded generator of documents and patches, and a strict reader of the database.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Map, Value, json};

use super::patch::Patch;

/// A small random number generator (xorshift): the seed reproduces a failure.
pub struct TestRng(u64);

impl TestRng {
    pub fn new(seed: u64) -> Self {
        // A state of zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        let at = self.below(u64::try_from(from.len()).unwrap());
        &from[usize::try_from(at).unwrap()]
    }

    pub fn value(&mut self, depth: u32) -> Value {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.below(3)),
            3 => json!(self.pick(&["", "a", "~1", "/", "ü"])),
            4 => json!(self.pick(&[0.0, 0.5, 1.0, -1e300])),
            5 | 6 => (0..self.below(5)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    pub fn object(&mut self, depth: u32) -> Map<String, Value> {
        let keys = ["a", "b", "", "~", "a/b", "0", "1", "-"];
        (0..self.below(5))
            .map(|_| ((*self.pick(&keys)).to_owned(), self.value(depth)))
            .collect()
    }

    /// Returns a place of `document`, or one next to an existing place, as a pointer.
    pub fn place(&mut self, document: &Value) -> String {
        let mut at = String::new();
        let mut value = document;
        loop {
            let keys: Vec<String> = match value {
                Value::Object(map) => map.keys().cloned().collect(),
                Value::Array(list) => (0..list.len()).map(|index| index.to_string()).collect(),
                _ => Vec::new(),
            };
            if self.below(4) == 0 || keys.is_empty() {
                return match self.below(3) {
                    0 => format!(
                        "{at}/{}",
                        self.pick(&["a", "b", "~0", "a~1b", "0", "2", "-"])
                    ),
                    _ => at,
                };
            }
            let key = self.pick(&keys);
            at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
            value = value
                .get(key)
                .or_else(|| value.get(key.parse::<usize>().ok()?))
                .unwrap();
        }
    }

    /// Returns a patch for `document` that usually applies; sometimes it undoes its own changes.
    pub fn patch(&mut self, document: &Value) -> Value {
        let mut after = document.clone();
        let mut operations = Vec::new();
        for _ in 0..=self.below(5) {
            let path = self.place(&after);
            let operation = match self.below(8) {
                0..3 => json!({"op": "add", "path": path, "value": self.value(2)}),
                3 | 4 => json!({"op": "remove", "path": path}),
                5 => json!({"op": "replace", "path": path, "value": self.value(2)}),
                6 => json!({"op": "add", "path": path, "value": document.pointer(&path)}),
                _ => {
                    let there = after.pointer(&path);
                    json!({"op": "test", "path": path, "value": there})
                }
            };
            // Most operations that do not apply are left out; otherwise hardly any patch would apply.
            let alone = Patch::from_value(json!([operation])).unwrap();
            if alone.apply(&mut after).is_ok() || self.below(20) == 0 {
                operations.push(operation);
            }
        }
        Value::Array(operations)
    }
}

/// The contents of a database, rebuilt only from its rows.
#[derive(Debug)]
pub struct ReplayedDatabase {
    /// The oldest snapshot's revision and document, then each revision with its document.
    pub documents: Vec<(u64, Value)>,
    /// The patches of the revisions after that snapshot, as recorded in the log.
    pub patches: Vec<(u64, String)>,
}

impl ReplayedDatabase {
    /// Reads the database at `path`. Panics if it is inconsistent: its pages, the numbers of its revisions, or a
    /// snapshot that differs from the result of the revisions before it.
    pub fn of(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .busy_timeout(std::time::Duration::from_mins(1))
            .unwrap();
        let sound: String = connection
            .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
            .unwrap();
        assert_eq!(sound, "ok");
        let view = connection.unchecked_transaction().unwrap();
        let snapshots = rows(&view, "SELECT revision, document FROM snapshot ORDER BY 1");
        let patches = rows(&view, "SELECT id, patch FROM revision ORDER BY 1");
        let refused =
            "SELECT CAST(substr(key, 9) AS INTEGER), value FROM meta WHERE key LIKE 'refused:%'";
        let refused = rows(&view, refused);

        let mut snapshots = snapshots.into_iter().peekable();
        let (mut at, text) = snapshots.next().expect("a snapshot");
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let mut documents = vec![(at, document.clone())];
        for (id, patch) in &patches {
            assert_eq!(*id, at + 1, "the numbers have no gap");
            at = *id;
            let applied = Patch::parse(patch).and_then(|patch| patch.apply(&mut document));
            let is_noted = refused.iter().any(|(noted, _)| noted == id);
            assert!(applied.is_err() || !is_noted, "revision {id} was refused");
            if let Some((_, text)) = snapshots.next_if(|(of, _)| of == id) {
                let snapshot: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(snapshot, document, "the snapshot of revision {id}");
            }
            documents.push((*id, document.clone()));
        }
        assert_eq!(snapshots.next(), None, "a snapshot of no revision");
        Self { documents, patches }
    }

    /// The newest revision and its document.
    pub fn newest(&self) -> &(u64, Value) {
        self.documents.last().unwrap()
    }
}

fn rows(connection: &Connection, sql: &str) -> Vec<(u64, String)> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let id: i64 = row.get(0)?;
        Ok((u64::try_from(id).unwrap(), row.get(1)?))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Returns the number of rounds and the seed of a random test: from the environment, or the default and a new seed
/// each time.
pub fn rounds(name: &str, usual: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = number("GATEWREN_SEED").unwrap_or_else(|| gatewren_base::sys::now_ms() % 1_000_000);
    let rounds = number(name).unwrap_or(usual);
    eprintln!("{name}={rounds} GATEWREN_SEED={seed}");
    (rounds, seed)
}
