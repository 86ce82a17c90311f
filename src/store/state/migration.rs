//! The schema of the state database, as the steps from each version to the next.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior};
use tracing::info;
use uuid::Uuid;

use gatewren_base::sys::{self, FileError};

use super::author_seal;
use super::error::StateError;

/// The steps from version N to N + 1, starting from an empty database. A released step is never edited.
pub const STEPS: &[&str] = &[VERSION_1, VERSION_2, author_seal::SCHEMA];

/// The tables, and the rules for every program that writes them.
///
/// The first trigger runs before SQLite would delete an old row for `INSERT OR REPLACE`. The second runs after the
/// insert, because a row without an explicit id has no id before it.
const VERSION_1: &str = r#"
CREATE TABLE meta     (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE snapshot (revision INTEGER PRIMARY KEY, document TEXT NOT NULL CHECK (json_valid(document))) STRICT;
CREATE TABLE revision (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, actor TEXT NOT NULL, cause TEXT,
                       patch TEXT NOT NULL CHECK (json_valid(patch))) STRICT;
INSERT INTO snapshot VALUES (0, '{"public":{}}');

CREATE TRIGGER revision_is_never_replaced BEFORE INSERT ON revision
WHEN EXISTS (SELECT 1 FROM revision WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'a revision is never replaced'); END;

CREATE TRIGGER revision_has_the_next_id AFTER INSERT ON revision
WHEN EXISTS (SELECT 1 FROM revision WHERE id > NEW.id)
  OR NEW.id <> 1 + max(coalesce((SELECT max(id) FROM revision WHERE id < NEW.id), 0),
                       coalesce((SELECT max(revision) FROM snapshot), 0))
BEGIN SELECT RAISE(ABORT, 'the id of a revision is max(id) + 1'); END;

CREATE TRIGGER revision_is_never_updated BEFORE UPDATE ON revision
BEGIN SELECT RAISE(ABORT, 'a revision is never updated'); END;

CREATE TRIGGER snapshot_is_never_updated BEFORE UPDATE ON snapshot
BEGIN SELECT RAISE(ABORT, 'a snapshot is never updated'); END;

CREATE TRIGGER snapshot_is_of_a_revision BEFORE INSERT ON snapshot
WHEN NOT EXISTS (SELECT 1 FROM revision WHERE id = NEW.revision)
BEGIN SELECT RAISE(ABORT, 'a snapshot is of a revision that is in the log'); END;
"#;

/// Deletes are allowed only from the oldest end, and never so far that a kept document could not be rebuilt. Rows
/// that are too large for their readers are rejected.
///
/// The SQL also runs in the SQLite of other programs, so it is written for 3.38 and later.
const VERSION_2: &str = r"
CREATE TRIGGER revision_is_trimmed_from_the_oldest BEFORE DELETE ON revision
WHEN OLD.id > (SELECT min(id) FROM revision) OR OLD.id > (SELECT min(revision) FROM snapshot)
BEGIN SELECT RAISE(ABORT, 'only the oldest revision is trimmed, and none after the oldest snapshot'); END;

CREATE TRIGGER revision_is_not_too_large BEFORE INSERT ON revision
WHEN length(CAST(NEW.patch AS BLOB)) > 4194304 OR length(NEW.actor) > 256 OR length(NEW.cause) > 256
BEGIN SELECT RAISE(ABORT, 'a patch has at most 4194304 bytes, an actor and a cause at most 256 characters'); END;

CREATE TRIGGER snapshot_is_never_replaced BEFORE INSERT ON snapshot
WHEN EXISTS (SELECT 1 FROM snapshot WHERE revision = NEW.revision)
BEGIN SELECT RAISE(ABORT, 'a snapshot is never replaced'); END;

CREATE TRIGGER snapshot_is_trimmed_from_the_oldest BEFORE DELETE ON snapshot
WHEN OLD.revision > (SELECT min(revision) FROM snapshot) OR (SELECT count(*) FROM snapshot) < 3
BEGIN SELECT RAISE(ABORT, 'only the oldest snapshot is trimmed, and two are kept'); END;
";

/// How the log of a new database begins if it replaces another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltLog {
    /// The number of its first revision, which changes nothing; also the time, in milliseconds since 1970.
    pub revision: u64,
    /// The note about the replaced database.
    pub note: String,
}

/// The version that `steps` lead to.
pub fn newest(steps: &[&str]) -> u64 {
    u64::try_from(steps.len()).unwrap_or(u64::MAX)
}

/// Returns the version of a database that has tables; `None` if it has no version number.
pub fn version(connection: &Connection) -> rusqlite::Result<Option<u64>> {
    let sql = "SELECT value FROM meta WHERE key = 'schema'";
    let found: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(found.and_then(|version| version.parse().ok()))
}

/// Returns whether the database is empty.
pub fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) = 0 FROM sqlite_schema";
    connection.query_row(sql, [], |row| row.get(0))
}

/// Creates the tables of the newest version, with the empty document, if there are none.
pub fn create(
    connection: &mut Connection,
    steps: &[&str],
    rebuilt: Option<&RebuiltLog>,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if is_empty(&transaction)? {
        take(&transaction, steps, 0)?;
        note(&transaction, "database", &Uuid::new_v4().to_string())?;
        if let Some(rebuilt) = rebuilt {
            begin_at(&transaction, rebuilt.revision)?;
            note(&transaction, "rebuilt", &rebuilt.note)?;
        }
    }
    transaction.commit()
}

/// Gives the empty document a number other than 0, which the rules forbid, and writes the first revision. With it,
/// SQLite assigns the next id to a row without an explicit id.
fn begin_at(transaction: &Transaction<'_>, revision: u64) -> rusqlite::Result<()> {
    let revision = i64::try_from(revision).unwrap_or(i64::MAX);
    let rule = "SELECT sql FROM sqlite_schema WHERE name = 'snapshot_is_never_updated'";
    let rule: String = transaction.query_row(rule, [], |row| row.get(0))?;
    transaction.execute_batch("DROP TRIGGER snapshot_is_never_updated")?;
    transaction.execute("UPDATE snapshot SET revision = ?1 - 1", [revision])?;
    transaction.execute_batch(&rule)?;
    let first = "INSERT INTO revision VALUES (?1, ?1, 'observer', 'rebuilt', '[]')";
    transaction.execute(first, [revision]).map(|_| ())
}

/// Migrates a database of an older version to the newest one, after making a copy beside it.
///
/// All steps are one transaction: a power cut leaves the old version.
pub fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), StateError> {
    let to_error = |error| StateError::sqlite(path, &error);
    let (Some(from), to) = (version(connection).map_err(to_error)?, newest(steps)) else {
        return Ok(());
    };
    if from >= to {
        return Ok(());
    }
    let copy = keep_copy(connection, path, from)?;
    info!(from, to, copy = %copy.display(),
        "the state database is migrated to a newer schema; a copy of the old one is kept");
    let immediate = TransactionBehavior::Immediate;
    let taken = connection
        .transaction_with_behavior(immediate)
        .and_then(|transaction| {
            take(&transaction, steps, from)?;
            transaction.commit()
        });
    taken.map_err(|error| {
        // Nothing was changed, so the copy is not needed; the next attempt makes another.
        let _ = fs::remove_file(&copy);
        to_error(error)
    })
}

/// Runs the steps after `version`.
fn take(transaction: &Transaction<'_>, steps: &[&str], version: u64) -> rusqlite::Result<()> {
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    for step in steps.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    note(transaction, "schema", &newest(steps).to_string())
}

fn note(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO meta VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2";
    connection.execute(sql, (key, value)).map(|_| ())
}

/// Makes a complete copy of the database, named after its version and the time.
fn keep_copy(connection: &Connection, path: &Path, version: u64) -> Result<PathBuf, StateError> {
    let fill = |copy: &Path| {
        connection
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()])
            .map(drop)
            .map_err(|error| StateError::sqlite(path, &error))
    };
    let refused = |cause: FileError| StateError::Unreadable {
        path: path.to_owned(),
        cause: format!("the copy before its migration failed: {cause}"),
    };
    sys::keep_copy(path, version, fill, refused)
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;
    use gatewren_base::sys::{Scratch, files};

    fn open(path: &Path, steps: &[&str]) -> Result<Connection, StateError> {
        schema::open(path, steps, None)
    }

    fn copies(scratch: &Scratch) -> Vec<PathBuf> {
        let names = fs::read_dir(scratch.path()).unwrap();
        let paths = names.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.to_string_lossy().contains(".schema-"))
            .collect()
    }

    fn add(connection: &Connection, sql: &str) -> rusqlite::Result<usize> {
        connection.execute(sql, [])
    }

    fn numbers(connection: &Connection) -> Vec<i64> {
        let mut ids = connection
            .prepare("SELECT id FROM revision ORDER BY id")
            .unwrap();
        let ids = ids.query_map([], |row| row.get(0)).unwrap();
        ids.map(Result::unwrap).collect()
    }

    const ROW: &str = "INSERT INTO revision (at_ms, actor, patch) VALUES (7, 'local:test', '[]')";

    #[test]
    fn the_first_version_is_brought_forward_and_a_copy_of_it_kept() {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");
        let old = open(&path, &STEPS[..1]).unwrap();
        assert_eq!(version(&old), Ok(Some(1)));
        add(&old, ROW).unwrap();
        add(&old, ROW).unwrap();
        let id = schema::database_id(&old).unwrap();
        drop(old);

        let new = open(&path, STEPS).unwrap();
        assert_eq!(version(&new), Ok(Some(newest(STEPS))));
        assert_eq!(schema::database_id(&new).unwrap(), id);
        assert_eq!(numbers(&new), [1, 2]);
        assert!(add(&new, "DELETE FROM revision").is_err());
        add(&new, ROW).unwrap();
        drop(new);

        let copies = copies(&scratch);
        assert_eq!(copies.len(), 1);
        let copy = open(&copies[0], &STEPS[..1]).unwrap();
        assert_eq!(numbers(&copy), [1, 2]);
        assert_eq!(files::mode(&copies[0]).unwrap() & 0o077, 0);
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_version() {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");
        let first = open(&path, &STEPS[..1]).unwrap();
        add(&first, ROW).unwrap();
        drop(first);
        let broken = [STEPS[0], "DROP TABLE revision; CREATE TABLE meta (x);"];
        assert!(open(&path, &broken).is_err());
        assert_eq!(copies(&scratch), [] as [PathBuf; 0]);
        let again = open(&path, &STEPS[..1]).unwrap();
        assert_eq!(numbers(&again), [1]);
        assert_eq!(version(&again), Ok(Some(1)));
    }

    #[test]
    fn a_database_of_this_version_is_left_alone() {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");
        drop(open(&path, STEPS).unwrap());
        drop(open(&path, STEPS).unwrap());
        assert_eq!(copies(&scratch), [] as [PathBuf; 0]);
    }
}
