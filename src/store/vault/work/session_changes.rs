//! Counts the changes of stored sessions, so that a front reads them again only after another one has changed some.

use rusqlite::{Connection, OptionalExtension as _};

/// The row of `meta` with the count.
const KEY: &str = "session.changes";

/// Counts a change, as part of the job that makes it.
pub(in crate::vault) fn count(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached(
            "INSERT INTO meta (key, value) VALUES (?1, '1')
             ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1",
        )?
        .execute([KEY])
        .map(drop)
}

/// Returns the count.
pub(in crate::vault) fn read(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let count = connection
        .prepare_cached("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?1")?
        .query_row([KEY], |row| row.get(0))
        .optional()?;
    Ok(count.unwrap_or(0))
}
