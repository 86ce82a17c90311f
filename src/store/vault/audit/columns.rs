//! The columns of the audit, in the order in which hashes cover them and exports list them.

use std::collections::HashSet;

use rusqlite::Connection;

/// The format of a row with a reason.
pub(in crate::vault) const FORMAT: i64 = 5;

/// The format of a row without a reason, which most rows are: its hash does not cover that column, which is null.
pub(in crate::vault) const WITHOUT_REASON: i64 = 4;

/// The columns that a row's hash covers.
pub(in crate::vault) const HASHED: [&str; 25] = [
    "seq",
    "at_ms",
    "call",
    "kind",
    "agent",
    "session",
    "request",
    "address",
    "tool",
    "risk",
    "arguments",
    "arguments_sha256",
    "target",
    "decision",
    "outcome",
    "duration_ms",
    "revision",
    "token",
    "space",
    "mode",
    "change",
    "revision_before",
    "exact",
    "error",
    "reason",
];

/// Returns how many of `HASHED` the hash of a row covers; `None` for an unknown format.
pub(in crate::vault) fn hashed(format: i64) -> Option<usize> {
    match format {
        1 => Some(17),
        2 => Some(22),
        3 => Some(23),
        WITHOUT_REASON => Some(HASHED.len() - 1),
        FORMAT => Some(HASHED.len()),
        _ => None,
    }
}

/// The columns that the hash does not cover.
pub(in crate::vault) const UNHASHED: [&str; 3] = ["format", "previous_sha256", "sha256"];

/// Returns whether the vault's schema version has this column.
pub(in crate::vault) fn has(connection: &Connection, column: &str) -> rusqlite::Result<bool> {
    existing_columns(connection).map(|known| known.contains(column))
}

fn existing_columns(connection: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info('audit')")?;
    let known = statement.query_map([], |row| row.get(0))?;
    known.collect()
}

/// Returns the column list for a SELECT. It also works for a vault whose schema has fewer columns.
pub(in crate::vault) fn all(connection: &Connection) -> rusqlite::Result<String> {
    let known = existing_columns(connection)?;
    let columns = HASHED.iter().chain(&UNHASHED).map(|name| match *name {
        name if known.contains(name) => name.to_owned(),
        "format" => "1 AS format".to_owned(),
        name => format!("NULL AS {name}"),
    });
    Ok(columns.collect::<Vec<_>>().join(", "))
}
