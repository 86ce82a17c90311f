//! Opens the database for programs other than the server: to read it, or to add a revision.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::error::StateError;
use super::migration::{self, STEPS, is_empty, newest};
use super::schema::{connect, database_id, open_for_reading, recognise};
use gatewren_base::sys::immutable_database_uri;

/// A database that is opened read-only.
#[derive(Debug)]
pub struct ReadOnlyDatabase {
    /// The connection to it.
    pub connection: Connection,
    /// The id that the database got when it was created.
    pub database_id: String,
    /// Whether changes by other programs cannot be seen.
    pub frozen: bool,
}

/// Opens the database at `path` for reading, even if other programs have it open.
///
/// Reading needs two small files beside it, which SQLite creates. If SQLite may not create them and no server runs,
/// only the file is read, frozen.
pub fn open_to_look(path: &Path) -> Result<ReadOnlyDatabase, StateError> {
    let to_error = |error| StateError::sqlite(path, &error);
    let mut connection = open_for_reading(path)?;
    let seen = is_empty(&connection).map_err(to_error);
    let frozen = matches!(seen, Err(StateError::Unreadable { .. })) && !has_log_of_its_own(path);
    if frozen {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        connection = connect(&immutable_database_uri(path), flags)?;
    }
    recognise_ours(path, &connection)?;
    Ok(ReadOnlyDatabase {
        database_id: database_id(&connection).map_err(to_error)?,
        connection,
        frozen,
    })
}

/// Opens the existing database at `path` to write a revision, as any program may.
pub fn open_to_add(path: &Path) -> Result<Connection, StateError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    recognise_ours(path, &connection)?;
    connection
        .pragma_update(None, "synchronous", "FULL")
        .map_err(|error| StateError::sqlite(path, &error))?;
    Ok(connection)
}

/// Returns whether changes may exist only in the log that SQLite keeps beside the database.
pub fn has_log_of_its_own(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Lists how the tables and triggers differ from the schema of the version that the database declares.
pub fn differences(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let version = migration::version(connection)?.and_then(|version| usize::try_from(version).ok());
    let steps = version.and_then(|version| STEPS.get(..version));
    let mut fresh = Connection::open_in_memory()?;
    migration::create(&mut fresh, steps.unwrap_or(STEPS), None)?;
    let (ours, found) = (definitions(&fresh)?, definitions(connection)?);
    let missing = ours
        .iter()
        .filter(|(name, sql)| found.get(*name) != Some(*sql));
    Ok(missing
        .map(|(name, _)| format!("`{name}` of the schema is missing or altered"))
        .collect())
}

fn recognise_ours(path: &Path, connection: &Connection) -> Result<(), StateError> {
    if is_empty(connection).map_err(|error| StateError::sqlite(path, &error))? {
        return Err(StateError::NotOurs(path.to_owned()));
    }
    recognise(path, connection, newest(STEPS))
}

/// Returns the definitions in the schema, by name.
fn definitions(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut rows = connection.prepare("SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL")?;
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
