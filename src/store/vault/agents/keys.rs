//! Secret keys of the server, one row each.

use rusqlite::{Connection, OptionalExtension as _};

/// The name of the key that seals the revisions which the server writes into the state.
pub const STATE_AUTHOR_KEY: &str = "state-author";

/// Returns the key with this name. Stores and returns `fresh` if there is none yet.
pub(in crate::vault) fn find_or_keep(
    connection: &Connection,
    name: &'static str,
    fresh: [u8; 32],
) -> Result<[u8; 32], rusqlite::Error> {
    if let Some(known) = find(connection, name)? {
        return Ok(known);
    }
    let keep = "INSERT INTO key (name, bytes) VALUES (?1, ?2)";
    connection.execute(keep, (name, fresh))?;
    Ok(fresh)
}

/// Returns the key with this name, if there is one.
pub(in crate::vault) fn find(
    connection: &Connection,
    name: &str,
) -> Result<Option<[u8; 32]>, rusqlite::Error> {
    connection
        .query_row("SELECT bytes FROM key WHERE name = ?1", [name], |row| {
            row.get(0)
        })
        .optional()
}
