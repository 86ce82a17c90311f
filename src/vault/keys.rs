//! Secrets that the server itself needs, one row each.

use rusqlite::{Connection, OptionalExtension as _};

use super::commit::Durability;
use super::error::VaultError;
use super::writer::Writer;
use crate::sys::random_bytes;

/// The key of that name; made of random bytes if there is none yet.
pub(super) async fn find_or_make(
    writer: &Writer,
    name: &'static str,
) -> Result<[u8; 32], VaultError> {
    let fresh: [u8; 32] = random_bytes()?;
    let work = move |connection: &Connection| {
        if let Some(known) = find(connection, name)? {
            return Ok(known);
        }
        connection.execute(
            "INSERT INTO key (name, bytes) VALUES (?1, ?2)",
            (name, fresh),
        )?;
        Ok(fresh)
    };
    let doing = "find or make a key";
    writer.write(doing, Durability::Power, work, |_| ()).await
}

/// The key of that name, if there is one.
pub(super) fn find(
    connection: &Connection,
    name: &str,
) -> Result<Option<[u8; 32]>, rusqlite::Error> {
    connection
        .query_row("SELECT bytes FROM key WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
}
