//! The log's rows: revisions, snapshots, and the notes on revisions that did not apply.

use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior};

use super::author::Author;

/// The longest patch of one revision as text, in bytes. The database refuses a longer one; found there all the
/// same, it does not apply.
pub const MAX_PATCH_BYTES: usize = 4 * 1024 * 1024;

/// The longest actor and the longest cause, in characters; the database refuses longer ones, and a reader sees
/// so much of them.
const MAX_NAME_CHARS: i64 = 256;

/// Revisions older than this are trimmed: 30 days.
const KEEP_MS: u64 = 30 * 24 * 3600 * 1000;

/// Revisions beyond this number are trimmed, the oldest first.
const KEEP_REVISIONS: u64 = 200_000;

/// One revision as it stands in the log; nothing in it has been checked, any program may have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Its number.
    pub id: u64,
    /// When it was written, in milliseconds since 1970, as its writer's clock said.
    pub at_ms: u64,
    /// Who wrote it.
    pub actor: String,
    /// The audit id of the call that led to it.
    pub cause: Option<String>,
    /// The patch as JSON text; empty if it is oversize.
    pub patch: String,
    /// Whether the patch is longer than [`MAX_PATCH_BYTES`].
    pub oversize: bool,
}

/// The newest snapshot: its revision and the document as JSON text.
pub fn newest_snapshot(connection: &Connection) -> rusqlite::Result<Option<(u64, String)>> {
    connection
        .query_row(
            "SELECT revision, document FROM snapshot ORDER BY revision DESC LIMIT 1",
            [],
            |row| Ok((number(row, 0)?, text(row, 1)?)),
        )
        .optional()
}

/// The oldest and the newest revision that are kept; nothing if none is.
pub fn kept(connection: &Connection) -> rusqlite::Result<Option<(u64, u64)>> {
    let mut ends = connection.prepare_cached("SELECT min(id), max(id) FROM revision")?;
    let ends: (Option<i64>, Option<i64>) =
        ends.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match ends {
        (Some(oldest), Some(newest)) => Some((unsigned(oldest), unsigned(newest))),
        _ => None,
    })
}

/// The newest revision, which may be kept in a snapshot alone.
pub fn newest(connection: &Connection) -> rusqlite::Result<u64> {
    let mut newest = connection.prepare_cached(
        "SELECT coalesce((SELECT max(id) FROM revision), (SELECT max(revision) FROM snapshot), 0)",
    )?;
    newest.query_row([], |row| number(row, 0))
}

/// A number that moves when another connection has committed something.
pub fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))
}

/// Shows every revision of `ids` in order, until `visit` breaks.
pub fn walk(
    connection: &Connection,
    ids: RangeInclusive<u64>,
    visit: &mut dyn FnMut(LogRow) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut rows = connection.prepare_cached(
        "SELECT id, at_ms, substr(actor, 1, ?4), substr(cause, 1, ?4),
                CASE WHEN octet_length(patch) <= ?3 THEN patch END
         FROM revision WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    )?;
    let (first, last) = (signed(*ids.start()), signed(*ids.end()));
    let most_bytes = i64::try_from(MAX_PATCH_BYTES).unwrap_or(i64::MAX);
    let mut rows = rows.query((first, last, most_bytes, MAX_NAME_CHARS))?;
    while let Some(row) = rows.next()? {
        if visit(log_row(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

/// Shows every revision of `ids` from the newest to the oldest, until `visit` breaks.
pub fn walk_back(
    connection: &Connection,
    ids: RangeInclusive<u64>,
    visit: &mut dyn FnMut(LogRow) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut rows = connection.prepare_cached(
        "SELECT id, at_ms, actor, cause, patch FROM revision WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC",
    )?;
    let mut rows = rows.query((signed(*ids.start()), signed(*ids.end())))?;
    while let Some(row) = rows.next()? {
        if visit(log_row(row)?).is_break() {
            break;
        }
    }
    Ok(())
}

/// One revision; nothing if it is not kept.
pub fn row(connection: &Connection, id: u64) -> rusqlite::Result<Option<LogRow>> {
    connection
        .prepare_cached("SELECT id, at_ms, actor, cause, patch FROM revision WHERE id = ?1")?
        .query_row([signed(id)], log_row)
        .optional()
}

/// Why the revision did not apply, as was noted by [`note_refused`]; nothing if it was not.
pub fn refusal(connection: &Connection, id: u64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([refused_key(id)], |row| text(row, 0))
        .optional()
}

/// Whether the revision did not apply, as was noted by [`note_refused`].
pub fn is_refused(connection: &Connection, id: u64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?
        .exists([refused_key(id)])
}

/// Notes that the revision does not apply; false if that was known.
pub fn note_refused(connection: &Connection, id: u64, why: &str) -> rusqlite::Result<bool> {
    let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO meta VALUES (?1, ?2)")?;
    insert.execute((refused_key(id), why)).map(|rows| rows > 0)
}

/// Writes a revision.
pub fn insert(
    connection: &Connection,
    (id, at_ms): (u64, u64),
    author: &Author,
    patch: &str,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO revision (id, at_ms, actor, cause, patch) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let actor = author.actor.to_string();
    insert
        .execute((signed(id), signed(at_ms), actor, &author.cause, patch))
        .map(|_| ())
}

/// Writes a snapshot, and takes away older snapshots and the revisions that are too old or too many.
///
/// What stands behind the snapshot before is kept, so that one damaged snapshot loses nothing.
pub fn compact(
    connection: &mut Connection,
    (revision, now_ms): (u64, u64),
    document: &str,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let before: i64 =
        transaction.query_row("SELECT max(revision) FROM snapshot", [], |row| row.get(0))?;
    let snapshot = "INSERT OR IGNORE INTO snapshot VALUES (?1, ?2)";
    transaction.execute(snapshot, (signed(revision), document))?;
    transaction.execute("DELETE FROM snapshot WHERE revision < ?1", [before])?;
    let young = "SELECT id FROM revision WHERE at_ms >= ?1 ORDER BY id LIMIT 1";
    let young: Option<i64> = transaction
        .query_row(young, [signed(now_ms.saturating_sub(KEEP_MS))], |row| {
            row.get(0)
        })
        .optional()?;
    let not_too_many = signed(revision.saturating_sub(KEEP_REVISIONS)) + 1;
    let first_kept = young
        .unwrap_or(before + 1)
        .max(not_too_many)
        .min(before + 1);
    transaction.execute("DELETE FROM revision WHERE id < ?1", [first_kept])?;
    transaction.execute(
        "DELETE FROM meta WHERE key LIKE 'refused:%'
           AND CAST(substr(key, 9) AS INTEGER) < (SELECT min(id) FROM revision)",
        [],
    )?;
    transaction.commit()
}

fn refused_key(id: u64) -> String {
    format!("refused:{id}")
}

fn log_row(row: &Row<'_>) -> rusqlite::Result<LogRow> {
    Ok(LogRow {
        id: number(row, 0)?,
        at_ms: number(row, 1)?,
        actor: text(row, 2)?,
        cause: optional_text(row, 3)?,
        oversize: row.get_ref(4)? == ValueRef::Null,
        patch: optional_text(row, 4)?.unwrap_or_default(),
    })
}

fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        _ => text(row, column).map(Some),
    }
}

/// Text that another program may have written in no valid UTF-8.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(column)?.as_bytes()?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(unsigned)
}

/// Numbers are not negative; what another program wrote may be, and counts as 0.
fn unsigned(id: i64) -> u64 {
    u64::try_from(id).unwrap_or_default()
}

fn signed(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}
