//! The log's rows: revisions, snapshots, and notes on revisions that did not apply.

use std::ops::{ControlFlow, RangeInclusive};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior};

use super::author::Author;

/// The longest patch of one revision as text, in bytes. The database rejects a longer one; if one is found anyway,
/// it does not apply.
pub const MAX_PATCH_BYTES: usize = 4 * 1024 * 1024;

/// The longest actor and the longest cause, in characters. The database rejects longer ones, and readers truncate
/// to this length.
const MAX_NAME_CHARS: i64 = 256;

/// The most JSON text of snapshots, in bytes, not counting the two newest. Above it the oldest snapshot is deleted,
/// along with the revisions that start from it.
const MAX_SNAPSHOT_BYTES: u64 = 64 * 1024 * 1024;

/// How much of the log is kept: revisions that are young enough and among the newest, and the snapshots needed to
/// rebuild the document of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateLogRetention {
    /// Revisions older than this are trimmed.
    pub age: Duration,
    /// Revisions beyond this number are trimmed, the oldest first.
    pub revisions: u64,
    /// The number of revisions after which a snapshot is written and the log trimmed.
    pub snapshot_every: u64,
}

impl Default for StateLogRetention {
    /// 30 days, 200,000 revisions, a snapshot every 4,096.
    fn default() -> Self {
        Self {
            age: Duration::from_hours(30 * 24),
            revisions: 200_000,
            snapshot_every: 4096,
        }
    }
}

/// The revisions of a range, without oversize patches.
const ROWS: &str = "SELECT id, at_ms, substr(actor, 1, ?4), substr(cause, 1, ?4),
        CASE WHEN octet_length(patch) <= ?3 THEN patch END
 FROM revision WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

/// One revision as recorded in the log. Nothing in it has been validated: any program may have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRow {
    /// Its number.
    pub id: u64,
    /// When it was written, in milliseconds since 1970, by its writer's clock.
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

/// Returns the newest snapshot: its revision and the document as JSON text.
pub fn newest_snapshot(connection: &Connection) -> rusqlite::Result<Option<(u64, String)>> {
    connection
        .query_row(
            "SELECT revision, document FROM snapshot ORDER BY revision DESC LIMIT 1",
            [],
            |row| Ok((number(row, 0)?, text(row, 1)?)),
        )
        .optional()
}

/// Returns the oldest and the newest revision that are kept; `None` if none is.
pub fn kept_range(connection: &Connection) -> rusqlite::Result<Option<(u64, u64)>> {
    let mut ends = connection.prepare_cached("SELECT min(id), max(id) FROM revision")?;
    let ends: (Option<i64>, Option<i64>) =
        ends.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match ends {
        (Some(oldest), Some(newest)) => Some((unsigned(oldest), unsigned(newest))),
        _ => None,
    })
}

/// Returns the oldest revision that was written at or after a time, by its writer's clock; `None` if none was. Reads
/// every row.
pub fn first_since(connection: &Connection, at_ms: u64) -> rusqlite::Result<Option<u64>> {
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    let mut first = connection.prepare_cached("SELECT min(id) FROM revision WHERE at_ms >= ?1")?;
    let first: Option<i64> = first.query_row([at_ms], |row| row.get(0))?;
    Ok(first.map(unsigned))
}

/// Returns the newest revision, which may exist only as a snapshot.
pub fn newest(connection: &Connection) -> rusqlite::Result<u64> {
    let mut newest = connection.prepare_cached(
        "SELECT coalesce((SELECT max(id) FROM revision), (SELECT max(revision) FROM snapshot), 0)",
    )?;
    newest.query_row([], |row| number(row, 0))
}

/// Returns a number that changes when another connection has committed.
pub fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))
}

/// Visits every revision of `ids` in order, until `visit` breaks.
pub fn walk(
    connection: &Connection,
    ids: RangeInclusive<u64>,
    visit: &mut dyn FnMut(LogRow) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    show(connection, ROWS, ids, visit)
}

/// Visits every revision of `ids` from the newest to the oldest, until `visit` breaks.
pub fn walk_back(
    connection: &Connection,
    ids: RangeInclusive<u64>,
    visit: &mut dyn FnMut(LogRow) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    show(connection, &format!("{ROWS} DESC"), ids, visit)
}

/// Returns one revision; `None` if it is not kept.
pub fn row(connection: &Connection, id: u64) -> rusqlite::Result<Option<LogRow>> {
    let mut found = None;
    walk(connection, id..=id, &mut |row| {
        found = Some(row);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Returns why the revision did not apply, as noted by [`note_refused`]; `None` if there is no note.
pub fn refusal(connection: &Connection, id: u64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([refused_key(id)], |row| text(row, 0))
        .optional()
}

/// Returns whether the revision did not apply, as noted by [`note_refused`].
pub fn is_refused(connection: &Connection, id: u64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM meta WHERE key = ?1")?
        .exists([refused_key(id)])
}

/// Notes that the revision does not apply; returns `false` if that was already noted.
pub fn note_refused(connection: &Connection, id: u64, why: &str) -> rusqlite::Result<bool> {
    let mut insert = connection.prepare_cached("INSERT OR IGNORE INTO meta VALUES (?1, ?2)")?;
    insert.execute((refused_key(id), why)).map(|rows| rows > 0)
}

/// Writes a revision.
pub fn insert(
    connection: &Connection,
    id: u64,
    at_ms: u64,
    author: &Author,
    patch: &str,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO revision (id, at_ms, actor, cause, patch) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let actor = author.actor.to_string();
    insert
        .execute((to_signed(id), to_signed(at_ms), actor, &author.cause, patch))
        .map(|_| ())
}

/// Writes a snapshot, and deletes the snapshots and revisions that are too old or too many.
///
/// The kept part begins with a snapshot, so that the document of each kept revision can be rebuilt. At least two
/// snapshots are kept, so that one damaged snapshot loses nothing.
pub fn compact(
    connection: &mut Connection,
    revision: u64,
    now_ms: u64,
    document: &str,
    retention: StateLogRetention,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let snapshot =
        "INSERT INTO snapshot SELECT ?1, ?2 WHERE ?1 > (SELECT max(revision) FROM snapshot)";
    transaction.execute(snapshot, (to_signed(revision), document))?;
    let oldest = oldest_wanted(&transaction, revision, now_ms, retention)?;
    let base = to_signed(oldest_snapshot(&transaction, to_signed(oldest))?);
    transaction.execute("DELETE FROM snapshot WHERE revision < ?1", [base])?;
    transaction.execute("DELETE FROM revision WHERE id <= ?1", [base])?;
    transaction.execute(
        "DELETE FROM meta WHERE key LIKE 'refused:%' AND CAST(substr(key, 9) AS INTEGER) <= ?1",
        [base],
    )?;
    transaction.commit()
}

/// Returns the oldest revision that is within both the age and the count limit.
fn oldest_wanted(
    connection: &Connection,
    revision: u64,
    now_ms: u64,
    retention: StateLogRetention,
) -> rusqlite::Result<u64> {
    let age_ms = u64::try_from(retention.age.as_millis()).unwrap_or(u64::MAX);
    let young = connection
        .query_row(
            "SELECT id FROM revision WHERE at_ms >= ?1 ORDER BY id LIMIT 1",
            [to_signed(now_ms.saturating_sub(age_ms))],
            |row| number(row, 0),
        )
        .optional()?;
    let near = revision.saturating_sub(retention.revisions) + 1;
    Ok(young.unwrap_or(revision + 1).max(near))
}

/// Returns the newest snapshot before the revision `oldest`, or as close to it as [`MAX_SNAPSHOT_BYTES`] allows.
fn oldest_snapshot(connection: &Connection, oldest: i64) -> rusqlite::Result<u64> {
    let mut snapshots = connection
        .prepare("SELECT revision, octet_length(document) FROM snapshot ORDER BY revision DESC")?;
    let mut snapshots = snapshots.query([])?;
    let (mut base, mut found, mut bytes) = (0, 0, 0);
    while let Some(row) = snapshots.next()? {
        bytes += if found < 2 { 0 } else { number(row, 1)? };
        if found >= 2 && (to_signed(base) < oldest || bytes > MAX_SNAPSHOT_BYTES) {
            break;
        }
        base = number(row, 0)?;
        found += 1;
    }
    Ok(base)
}

fn show(
    connection: &Connection,
    rows: &str,
    ids: RangeInclusive<u64>,
    visit: &mut dyn FnMut(LogRow) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut rows = connection.prepare_cached(rows)?;
    let (first, last) = (to_signed(*ids.start()), to_signed(*ids.end()));
    let most_bytes = i64::try_from(MAX_PATCH_BYTES).unwrap_or(i64::MAX);
    let mut rows = rows.query((first, last, most_bytes, MAX_NAME_CHARS))?;
    while let Some(row) = rows.next()? {
        if visit(log_row(row)?).is_break() {
            break;
        }
    }
    Ok(())
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

/// Reads text; another program may have written invalid UTF-8, which is replaced.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(column)?.as_bytes()?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(unsigned)
}

/// Ids and times are not negative; a negative number by another program counts as 0.
fn unsigned(id: i64) -> u64 {
    u64::try_from(id).unwrap_or_default()
}

fn to_signed(id: u64) -> i64 {
    i64::try_from(id).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::migration::STEPS;
    use super::super::schema;
    use super::*;
    use gatewren_base::sys::Scratch;

    const DAY_MS: u64 = 24 * 3600 * 1000;

    /// A separate log that is compacted after each segment.
    struct Log {
        _scratch: Scratch,
        connection: Connection,
        next: u64,
        retention: StateLogRetention,
    }

    impl Log {
        fn new(days: u64, revisions: u64) -> Self {
            let scratch = Scratch::new();
            let path = scratch.join("state.db");
            let connection = schema::open(&path, STEPS, None).unwrap();
            let age = Duration::from_hours(24 * days);
            Self {
                _scratch: scratch,
                connection,
                next: 1,
                retention: StateLogRetention {
                    age,
                    revisions,
                    ..StateLogRetention::default()
                },
            }
        }

        /// Writes this many revisions on a day, and then a snapshot.
        fn segment(&mut self, revisions: u64, day: u64, document: &str) {
            for _ in 0..revisions {
                let author = Author::observer();
                insert(&self.connection, self.next, day * DAY_MS, &author, "[]").unwrap();
                self.next += 1;
            }
            let (newest, now_ms) = (self.next - 1, day * DAY_MS);
            let connection = &mut self.connection;
            compact(connection, newest, now_ms, document, self.retention).unwrap();
        }

        /// Returns the snapshots, and the oldest and newest revision that are kept.
        fn kept_rows(&self) -> (Vec<i64>, Option<(u64, u64)>) {
            let mut found = self
                .connection
                .prepare("SELECT revision FROM snapshot ORDER BY revision")
                .unwrap();
            let found = found.query_map([], |row| row.get(0)).unwrap();
            let kept = kept_range(&self.connection).unwrap();
            (found.map(Result::unwrap).collect(), kept)
        }
    }

    #[test]
    fn what_is_old_is_trimmed_up_to_a_snapshot() {
        let mut log = Log::new(30, 1_000_000);
        for day in [1, 2, 3, 20, 32] {
            log.segment(10, day, "{}");
        }
        // Revisions of the second day are kept: they are 30 days old, and their documents start from the snapshot
        // before them.
        assert_eq!(log.kept_rows(), (vec![10, 20, 30, 40, 50], Some((11, 50))));
        log.segment(10, 40, "{}");
        assert_eq!(log.kept_rows(), (vec![30, 40, 50, 60], Some((31, 60))));
        log.segment(10, 400, "{}");
        assert_eq!(log.kept_rows(), (vec![60, 70], Some((61, 70))));
        log.segment(10, 1000, "{}");
        assert_eq!(log.kept_rows(), (vec![70, 80], Some((71, 80))));
    }

    #[test]
    fn what_is_too_much_is_trimmed_up_to_a_snapshot() {
        let mut log = Log::new(30, 25);
        for _ in 0..10 {
            log.segment(10, 1, "{}");
        }
        assert_eq!(log.kept_rows(), (vec![70, 80, 90, 100], Some((71, 100))));
    }

    #[test]
    fn snapshots_are_bounded_by_their_size() {
        let mut log = Log::new(30, 1_000_000);
        let large = json!({"x": "x".repeat(15 * 1024 * 1024)}).to_string();
        for _ in 0..8 {
            log.segment(1, 1, &large);
        }
        // The two newest, and four more.
        assert_eq!(log.kept_rows(), (vec![3, 4, 5, 6, 7, 8], Some((4, 8))));
    }

    #[test]
    fn a_snapshot_of_the_same_revision_is_not_written_twice() {
        let mut log = Log::new(30, 100);
        log.segment(5, 1, "{}");
        log.segment(0, 1, r#"{"other":1}"#);
        assert_eq!(log.kept_rows(), (vec![0, 5], Some((1, 5))));
        let newest = newest_snapshot(&log.connection).unwrap();
        assert_eq!(newest, Some((5, "{}".to_owned())));
    }

    #[test]
    fn notes_on_refusals_go_with_their_revisions() {
        let mut log = Log::new(30, 15);
        log.segment(10, 1, "{}");
        assert_eq!(note_refused(&log.connection, 4, "why"), Ok(true));
        assert_eq!(note_refused(&log.connection, 4, "again"), Ok(false));
        log.segment(10, 1, "{}");
        note_refused(&log.connection, 14, "why").unwrap();
        log.segment(10, 1, "{}");
        assert_eq!(log.kept_rows().0, [10, 20, 30]);
        let refused = [4, 14].map(|id| is_refused(&log.connection, id));
        assert_eq!(refused, [Ok(false), Ok(true)]);
    }
}
