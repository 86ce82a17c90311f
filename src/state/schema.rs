//! The file: made, recognised and checked before anything is read from it.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior};
use uuid::Uuid;

use super::error::{SCHEMA, StateError};

/// How long a statement waits for another program's lock; after that the caller hears "busy".
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Owner and group read and write: the group is `gatewren-state`.
const MODE: u32 = 0o660;

/// The tables, and the rules that hold for every program that writes them.
///
/// The first trigger runs before SQLite would take an old row away for `INSERT OR REPLACE`; the second
/// one after, because a row without an explicit id has none before.
const TABLES: &str = r#"
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

/// Opens the database at `path` for writing, after making it or checking it.
pub fn open(path: &Path) -> Result<Connection, StateError> {
    create_file(path).map_err(|error| StateError::io(path, &error))?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let said = |error| StateError::sqlite(path, &error);
    // Recognised before the first write: somebody else's file stays as it is.
    recognise(path, &connection)?;
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .map_err(said)?;
    // A revision that somebody has heard of survives a power cut: numbers are never given twice.
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(said)?;
    create_tables(&mut connection).map_err(said)?;
    check(path, &connection)?;
    Ok(connection)
}

/// Opens the database at `path`, which [`open`] has seen, for reading alone.
pub fn open_for_reading(path: &Path) -> Result<Connection, StateError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// A database that is only looked at.
#[derive(Debug)]
pub struct Looked {
    /// The way to it.
    pub connection: Connection,
    /// The id that it was given when it was made.
    pub database_id: String,
    /// Whether changes by others cannot be seen.
    pub frozen: bool,
}

/// Opens the database at `path` for reading, whoever else has it open.
///
/// Reading needs two small files beside it, which SQLite makes. Where it may not, and no server runs, the
/// file alone is read, frozen.
pub fn open_to_look(path: &Path) -> Result<Looked, StateError> {
    let said = |error| StateError::sqlite(path, &error);
    let mut connection = open_for_reading(path)?;
    let mut empty = is_empty(&connection).map_err(said);
    let refused = matches!(empty, Err(StateError::Unreadable { .. }));
    let frozen = refused && !has_log_of_its_own(path);
    if frozen {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        connection = connect(&immutable(path), flags)?;
        empty = is_empty(&connection).map_err(said);
    }
    if empty? {
        return Err(StateError::NotOurs(path.to_owned()));
    }
    recognise(path, &connection)?;
    Ok(Looked {
        database_id: database_id(&connection).map_err(said)?,
        connection,
        frozen,
    })
}

/// Opens the database at `path`, which exists, to write a revision as any program may.
pub fn open_to_add(path: &Path) -> Result<Connection, StateError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let said = |error| StateError::sqlite(path, &error);
    if is_empty(&connection).map_err(said)? {
        return Err(StateError::NotOurs(path.to_owned()));
    }
    recognise(path, &connection)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(said)?;
    Ok(connection)
}

/// Whether changes of the database may stand in the log that SQLite keeps beside it.
pub fn has_log_of_its_own(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// How the tables and triggers differ from those that [`open`] makes; nothing if they are the same.
pub fn differences(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let fresh = Connection::open_in_memory()?;
    fresh.execute_batch(TABLES)?;
    let (ours, found) = (definitions(&fresh)?, definitions(connection)?);
    let missing = ours
        .iter()
        .filter(|(name, sql)| found.get(*name) != Some(*sql));
    Ok(missing
        .map(|(name, _)| format!("`{name}` of the schema is missing or was altered"))
        .collect())
}

/// What the schema says, by name.
fn definitions(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut rows = connection.prepare("SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// The id that the database was given when it was made.
pub fn database_id(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT value FROM meta WHERE key = 'database'", [], |row| {
        row.get(0)
    })
}

/// Moves a damaged database out of the way, with what SQLite keeps beside it; says where to.
pub fn move_aside(path: &Path, now_ms: u64) -> io::Result<PathBuf> {
    let beside = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let aside = format!(".damaged-{now_ms}");
    for end in ["-wal", "-shm"] {
        match fs::rename(beside(end), beside(&format!("{aside}{end}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, beside(&aside))?;
    Ok(beside(&aside))
}

fn create_file(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path);
    match made {
        // Once more, because the umask took the group's rights away.
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StateError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.busy_timeout(BUSY_TIMEOUT).map(|()| connection))
        .map_err(|error| StateError::sqlite(path, &error))
}

/// The file as a URI by which SQLite reads it without a lock.
fn immutable(path: &Path) -> PathBuf {
    let path = path.as_os_str().as_bytes().iter().map(|byte| match byte {
        b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
        letter if letter.is_ascii_alphanumeric() => char::from(*letter).to_string(),
        other => format!("%{other:02X}"),
    });
    PathBuf::from(format!("file:{}?immutable=1", path.collect::<String>()))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
        row.get(0)
    })
}

/// Whether the file is new, or ours and of a version that we know.
fn recognise(path: &Path, connection: &Connection) -> Result<(), StateError> {
    let said = |error| StateError::sqlite(path, &error);
    if is_empty(connection).map_err(said)? {
        return Ok(());
    }
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'
                  AND name IN ('meta', 'snapshot', 'revision')";
    let tables: i64 = connection
        .query_row(tables, [], |row| row.get(0))
        .map_err(said)?;
    if tables != 3 {
        return Err(StateError::NotOurs(path.to_owned()));
    }
    let schema: Option<String> = connection
        .query_row("SELECT value FROM meta WHERE key = 'schema'", [], |row| {
            row.get(0)
        })
        .optional()
        .map_err(said)?;
    match schema.as_deref().map(str::parse) {
        Some(Ok(schema)) if schema > SCHEMA => Err(StateError::Newer {
            path: path.to_owned(),
            schema,
        }),
        // Older schemas will be migrated here, on a copy; there is none before the first.
        Some(Ok(SCHEMA)) => Ok(()),
        _ => Err(damaged(path, "its schema version is missing or unknown")),
    }
}

fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if is_empty(&transaction)? {
        transaction.execute_batch(TABLES)?;
        let insert = "INSERT INTO meta VALUES ('schema', ?1), ('database', ?2)";
        transaction.execute(insert, (SCHEMA.to_string(), Uuid::new_v4().to_string()))?;
    }
    transaction.commit()
}

fn check(path: &Path, connection: &Connection) -> Result<(), StateError> {
    let said = |error| StateError::sqlite(path, &error);
    let report: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(said)?;
    if report == "ok" {
        Ok(())
    } else {
        Err(damaged(path, &report))
    }
}

fn damaged(path: &Path, cause: &str) -> StateError {
    let cause = cause.to_owned();
    StateError::Damaged {
        path: path.to_owned(),
        cause,
    }
}
