//! Conversion of numbers for SQLite, which only has signed 64-bit integers.

use rusqlite::Row;

/// Converts a count or a time for a column. A number that is too large becomes the maximum.
pub(super) fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads a count or a time from a column. A negative number becomes zero.
pub(super) fn from_column(row: &Row<'_>, column: &str) -> Result<u64, rusqlite::Error> {
    row.get::<_, i64>(column)
        .map(|number| u64::try_from(number).unwrap_or(0))
}

/// Like `from_column`, for a column that may be null.
pub(super) fn from_optional(row: &Row<'_>, column: &str) -> Result<Option<u64>, rusqlite::Error> {
    row.get::<_, Option<i64>>(column)
        .map(|number| number.map(|number| u64::try_from(number).unwrap_or(0)))
}
