//! Creates the database file, or recognises and checks it before anything is read.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::StateError;
use super::migration::{self, RebuiltLog, is_empty, newest};

/// How long a statement waits for another program's lock; then the caller gets "busy".
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The size to which SQLite's write-ahead log is truncated after a checkpoint, in bytes. A large transaction of
/// another program makes it longer for a while.
const MAX_LOG_BYTES: i64 = 4 * 1024 * 1024;

/// Owner and group read and write: the group is `gatewren-state`.
const MODE: u32 = 0o660;

/// Opens the database at `path` for writing, after checking it and migrating it to the newest version of `steps`;
/// creates it if there is none.
pub fn open(
    path: &Path,
    steps: &[&str],
    rebuilt: Option<&RebuiltLog>,
) -> Result<Connection, StateError> {
    create_file(path).map_err(|error| StateError::io(path, &error))?;
    let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let to_error = |error| StateError::sqlite(path, &error);
    // Recognised before the first write: another program's file stays unchanged.
    recognise(path, &connection, newest(steps))?;
    for (name, value) in [
        ("journal_mode", "WAL"),
        // A published revision survives a power cut: numbers are never reused.
        ("synchronous", "FULL"),
    ] {
        connection
            .pragma_update(None, name, value)
            .map_err(to_error)?;
    }
    connection
        .pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)
        .map_err(to_error)?;
    check(path, &connection)?;
    migration::create(&mut connection, steps, rebuilt).map_err(to_error)?;
    migration::migrate(&mut connection, path, steps)?;
    Ok(connection)
}

/// Opens the database at `path`, which [`open`] has checked, read-only.
pub fn open_for_reading(path: &Path) -> Result<Connection, StateError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Returns the id that the database got when it was created.
pub fn database_id(connection: &Connection) -> rusqlite::Result<String> {
    connection.query_row("SELECT value FROM meta WHERE key = 'database'", [], |row| {
        row.get(0)
    })
}

fn create_file(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path);
    match made {
        // Set again, because the umask removed the group's permissions.
        Ok(_) => fs::set_permissions(path, Permissions::from_mode(MODE)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens the file; a statement waits up to the timeout when the database is locked.
pub fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StateError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
        .and_then(|connection| connection.busy_timeout(BUSY_TIMEOUT).map(|()| connection))
        .map_err(|error| StateError::sqlite(path, &error))
}

/// Checks that the file is new, or ours and of a version that we know.
pub fn recognise(path: &Path, connection: &Connection, known: u64) -> Result<(), StateError> {
    let to_error = |error| StateError::sqlite(path, &error);
    if is_empty(connection).map_err(to_error)? {
        return Ok(());
    }
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'
                  AND name IN ('meta', 'snapshot', 'revision')";
    let tables: i64 = connection
        .query_row(tables, [], |row| row.get(0))
        .map_err(to_error)?;
    if tables != 3 {
        return Err(StateError::NotOurs(path.to_owned()));
    }
    match migration::version(connection).map_err(to_error)? {
        Some(schema) if schema > known => Err(StateError::Newer {
            path: path.to_owned(),
            schema,
            known,
        }),
        Some(1..) => Ok(()),
        _ => Err(damaged(path, "its schema version is missing or unknown")),
    }
}

fn check(path: &Path, connection: &Connection) -> Result<(), StateError> {
    let to_error = |error| StateError::sqlite(path, &error);
    let report: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(to_error)?;
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
