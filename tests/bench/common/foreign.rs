//! Another program's connection to SQLite: to the state, as its man page describes, or to a bare table.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::Error;

/// A table with the columns of the state's log, and none of its constraints.
const BARE: &str = "
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE revision (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, actor TEXT NOT NULL, cause TEXT,
                       patch TEXT NOT NULL) STRICT;";

/// A program that writes.
pub struct Foreign(Connection);

impl Foreign {
    /// Opens a new file with only the bare table.
    pub fn bare(file: &Path) -> Result<Self, Error> {
        let connection = Connection::open(file)?;
        connection.execute_batch(BARE)?;
        Ok(Self(connection))
    }

    /// Opens the state.
    pub fn of_state(file: &Path) -> Result<Self, Error> {
        let connection = Connection::open(file)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        Ok(Self(connection))
    }

    /// Commits one revision; returns its number.
    pub fn commit(&self, patch: &str) -> Result<i64, Error> {
        self.commit_all(std::iter::once(patch.to_owned()))
    }

    /// Commits many revisions at once; returns the number of the last.
    pub fn commit_all(&self, patches: impl Iterator<Item = String>) -> Result<i64, Error> {
        let run = |sql| self.0.prepare_cached(sql)?.execute([]);
        run("BEGIN IMMEDIATE")?;
        for patch in patches {
            self.0
                .prepare_cached(
                    "INSERT INTO revision (at_ms, actor, patch) VALUES (0, 'local:bench', ?1)",
                )?
                .execute([patch])?;
        }
        let id = self.0.last_insert_rowid();
        run("COMMIT")?;
        Ok(id)
    }
}

/// Returns the patch by which every measured revision changes a number.
pub fn tick(key: &str, n: u64) -> String {
    format!(r#"[{{"op":"add","path":"/public/bench/{key}","value":{n}}}]"#)
}
