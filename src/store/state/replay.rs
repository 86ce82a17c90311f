//! Replays the log from a snapshot: the document at any later revision.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;

use super::document::{Document, Draft};
use super::error::StateError;
use super::log::{self, LogRow};
use super::operation::AppliedChange;
use super::patch::PatchError;

/// A step of a replay.
#[derive(Debug)]
pub struct ReplayStep<'s> {
    /// The row of the log.
    pub row: &'s LogRow,
    /// Its changes, or why it does not apply.
    pub outcome: Result<Vec<AppliedChange>, PatchError>,
    /// The document after it.
    pub document: &'s Document,
}

/// Returns the oldest snapshot that is kept, as a document.
pub fn oldest_snapshot(path: &Path, connection: &Connection) -> Result<Document, StateError> {
    snapshot(
        path,
        connection,
        "SELECT min(revision) FROM snapshot WHERE ?1 >= 0",
        0,
    )?
    .ok_or_else(|| damaged(path, "it has no snapshot"))
}

/// Returns the newest snapshot at or before `revision`, as a document; `None` if all are newer.
pub fn snapshot_before(
    path: &Path,
    connection: &Connection,
    revision: u64,
) -> Result<Option<Document>, StateError> {
    let sql = "SELECT max(revision) FROM snapshot WHERE revision <= ?1";
    snapshot(path, connection, sql, revision)
}

/// Advances `document` to the revision `upto` or to the newest one, and visits every step.
pub fn replay(
    path: &Path,
    connection: &Connection,
    document: &Document,
    upto: u64,
    visit: &mut dyn FnMut(ReplayStep<'_>),
) -> Result<Document, StateError> {
    let mut draft = Draft::of(document.clone());
    let mut gap = None;
    log::walk(connection, document.revision + 1..=upto, &mut |row| {
        if row.id != draft.document.revision + 1 {
            gap = Some(draft.document.revision + 1);
            return ControlFlow::Break(());
        }
        let outcome = draft.step_by(&row);
        let document = &draft.document;
        visit(ReplayStep {
            row: &row,
            outcome,
            document,
        });
        ControlFlow::Continue(())
    })
    .map_err(|error| StateError::sqlite(path, &error))?;
    match gap {
        Some(missing) => Err(damaged(path, &format!("revision {missing} is missing"))),
        None => Ok(draft.document),
    }
}

/// Returns the error for an inconsistent file.
pub fn damaged(path: &Path, cause: &str) -> StateError {
    StateError::Damaged {
        path: path.to_owned(),
        cause: cause.to_owned(),
    }
}

fn snapshot(
    path: &Path,
    connection: &Connection,
    which: &str,
    revision: u64,
) -> Result<Option<Document>, StateError> {
    let to_error = |error| StateError::sqlite(path, &error);
    let sql = format!("SELECT revision, document FROM snapshot WHERE revision = ({which})");
    let revision = i64::try_from(revision).unwrap_or(i64::MAX);
    let found: Option<(i64, String)> = connection
        .query_row(&sql, [revision], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(to_error)?;
    let Some((revision, text)) = found else {
        return Ok(None);
    };
    let root: Option<Value> = serde_json::from_str(&text).ok().filter(Value::is_object);
    let root = root.ok_or_else(|| {
        let cause = format!("the snapshot of revision {revision} is not a JSON object");
        damaged(path, &cause)
    })?;
    let at_ms = at_ms(connection, revision).map_err(to_error)?;
    let revision = u64::try_from(revision).unwrap_or_default();
    Ok(Some(Document::new(revision, root, at_ms)))
}

/// Returns when a revision was written; 0 if it is no longer in the log.
fn at_ms(connection: &Connection, revision: i64) -> rusqlite::Result<u64> {
    let sql = "SELECT max(at_ms, 0) FROM revision WHERE id = ?1";
    let found = connection.query_row(sql, [revision], |row| row.get::<_, i64>(0));
    let found = found.optional()?.unwrap_or_default();
    Ok(u64::try_from(found).unwrap_or_default())
}
