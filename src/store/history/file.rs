//! Opens the file of the history, and begins a new one in place of a damaged one.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tracing::warn;

use super::error::UsageHistoryError;
use gatewren_base::sys::{files, move_aside, now_ms};

/// Marks the file as ours in SQLite's header: `gwuh`.
const APPLICATION_ID: i64 = 0x6777_7568;

/// The version of the rows. Version 2 added `disk_percent`; rows of version 1 are valid in it. A program that knows only
/// version 1 would misread new rows, so it must refuse the file.
const SCHEMA: i64 = 2;

const TABLES: &str = "
    CREATE TABLE minutes (at_s INTEGER PRIMARY KEY, samples BLOB NOT NULL) STRICT;
    CREATE TABLE quarters (at_s INTEGER PRIMARY KEY, samples BLOB NOT NULL) STRICT;
    CREATE TABLE series (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        seen_s INTEGER NOT NULL
    ) STRICT;
";

/// The most pages of 4096 bytes, 40 MiB: with all containers that are sampled it needs about 30. Beyond it nothing more
/// is written until old samples are deleted.
const MAX_PAGES: i64 = 10_240;

/// After how many pages the write-ahead log is copied into the file: at 1 MiB.
const LOG_PAGES: i64 = 256;

/// How many pages are kept in memory: 256 KiB. A sample changes few, and a query reads each once.
const CACHE_PAGES: i64 = 64;

/// How long a statement waits for another process that has locked the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the history, or creates it (mode 0600). A damaged file is set aside.
pub fn open(path: &Path) -> Result<Connection, UsageHistoryError> {
    match open_once(path) {
        Err(damaged @ UsageHistoryError::Damaged { .. }) => {
            set_aside(path, &damaged)?;
            open_once(path)
        }
        opened => opened,
    }
}

/// Moves a damaged history away, so that a new one can begin.
pub fn set_aside(path: &Path, damage: &UsageHistoryError) -> Result<(), UsageHistoryError> {
    let aside = move_aside(path, now_ms()).map_err(|cause| UsageHistoryError::io(path, &cause))?;
    warn!(cause = %damage, aside = %aside.display(), "the damaged usage history was moved aside, and a new one begins");
    Ok(())
}

fn open_once(path: &Path) -> Result<Connection, UsageHistoryError> {
    if !path.exists() {
        files::create_private(path).map_err(|cause| UsageHistoryError::Failed {
            path: path.to_owned(),
            cause: cause.to_string(),
        })?;
    }
    let failed = |cause: rusqlite::Error| UsageHistoryError::sqlite(path, &cause);
    let mut connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    let number = |connection: &Connection, name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
    };
    let schema = number(&connection, "user_version").map_err(failed)?;
    let id = number(&connection, "application_id").map_err(failed)?;
    if id == APPLICATION_ID && schema > SCHEMA {
        let path = path.to_owned();
        return Err(UsageHistoryError::Newer { path, schema });
    }
    let is_empty = || {
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| {
            row.get(0)
        })
    };
    let is_new = id == 0 && schema == 0 && is_empty().map_err(failed)?;
    if !is_new && id != APPLICATION_ID {
        return Err(UsageHistoryError::Damaged {
            path: path.to_owned(),
            cause: "it is not a usage history".to_owned(),
        });
    }
    prepare(&mut connection, is_new).map_err(failed)?;
    if schema < SCHEMA {
        connection
            .pragma_update(None, "user_version", SCHEMA)
            .map_err(failed)?;
    }
    Ok(connection)
}

fn prepare(connection: &mut Connection, is_new: bool) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // A power cut may lose the last minutes, and costs no consistency.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", LOG_PAGES * 4096)?;
    connection.pragma_update(None, "max_page_count", MAX_PAGES)?;
    connection.pragma_update(None, "cache_size", CACHE_PAGES)?;
    if is_new {
        let change = connection.transaction()?;
        change.execute_batch(TABLES)?;
        change.pragma_update(None, "application_id", APPLICATION_ID)?;
        change.commit()?;
    }
    Ok(())
}
