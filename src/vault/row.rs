//! Numbers on their way into SQLite and out: it knows signed 64 bits only.

use rusqlite::Row;

/// A count or a time for a column; what is too large becomes the largest.
pub(super) fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count or a time from a column; below zero is zero.
pub(super) fn from_column(row: &Row<'_>, column: &str) -> Result<u64, rusqlite::Error> {
    row.get::<_, i64>(column)
        .map(|number| u64::try_from(number).unwrap_or(0))
}

/// The same where the column may be empty.
pub(super) fn from_optional(row: &Row<'_>, column: &str) -> Result<Option<u64>, rusqlite::Error> {
    row.get::<_, Option<i64>>(column)
        .map(|number| number.map(|number| u64::try_from(number).unwrap_or(0)))
}
