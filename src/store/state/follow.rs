//! Advances the document by the log: all of it at the start, then the revisions of other programs.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use tracing::warn;

use gatewren_base::sys::now_ms;

use super::document::{Document, Draft};
use super::error::StateError;
use super::log;
use super::recent::RecentEffects;

/// The most revisions of other programs that share one copy of the document; more make several copies.
const MAX_BATCH: usize = 1000;

/// The most bytes of their patches. Their changes are in memory twice until they are published.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// How much has been written since the newest snapshot.
#[derive(Debug, Default, Clone, Copy)]
pub struct WritesSinceSnapshot {
    /// The number of revisions.
    pub revisions: u64,
    /// The bytes of their patches.
    pub bytes: usize,
}

impl WritesSinceSnapshot {
    /// Counts one revision.
    pub fn count(&mut self, bytes: usize) {
        self.revisions += 1;
        self.bytes += bytes;
    }
}

/// What [`load`] found in a database.
#[derive(Debug)]
pub struct LoadedState {
    /// The newest document.
    pub document: Document,
    /// The changes of the revisions after the snapshot.
    pub recent: RecentEffects,
    /// The number and size of those revisions.
    pub since_snapshot: WritesSinceSnapshot,
}

/// Reads the newest snapshot and the revisions after it.
pub fn load(path: &Path, connection: &Connection) -> Result<LoadedState, StateError> {
    let to_error = |cause| StateError::sqlite(path, &cause);
    let damaged = |cause: &str| {
        let cause = cause.to_owned();
        StateError::Damaged {
            path: path.to_owned(),
            cause,
        }
    };
    let (revision, text) = log::newest_snapshot(connection)
        .map_err(to_error)?
        .ok_or_else(|| damaged("it has no snapshot"))?;
    let root: Value = serde_json::from_str(&text)
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| damaged("its newest snapshot is not a JSON object"))?;
    let mut draft = Draft::of(Document::new(revision, root, now_ms()));
    let mut recent = RecentEffects::since(revision);
    let mut since_snapshot = WritesSinceSnapshot::default();
    loop {
        let before = draft.document.revision;
        let read = read_on(connection, &mut draft, &mut since_snapshot).map_err(to_error)?;
        for (id, changes) in draft.changed.drain(..) {
            recent.push(id, changes);
        }
        draft.applied.clear();
        match read {
            ReadProgress::Gap => return Err(damaged("revisions are missing in its log")),
            ReadProgress::Read if draft.document.revision == before => break,
            ReadProgress::Read => {}
        }
    }
    Ok(LoadedState {
        document: draft.document,
        recent,
        since_snapshot,
    })
}

/// How far [`read_on`] got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadProgress {
    /// It read everything, or as much as one draft takes.
    Read,
    /// The next revision is missing from the log, but later ones exist.
    Gap,
}

/// Advances a draft by the next revisions of the log. Revisions that do not apply are noted in the database and
/// logged once.
pub fn read_on(
    connection: &Connection,
    draft: &mut Draft,
    since: &mut WritesSinceSnapshot,
) -> rusqlite::Result<ReadProgress> {
    let mut gap = false;
    let (mut revisions, mut bytes) = (0, 0);
    let mut refused = Vec::new();
    log::walk(
        connection,
        draft.document.revision + 1..=u64::MAX,
        &mut |row| {
            gap = row.id != draft.document.revision + 1;
            if gap || revisions == MAX_BATCH || bytes > MAX_BATCH_BYTES {
                return ControlFlow::Break(());
            }
            revisions += 1;
            bytes += row.patch.len();
            since.count(row.patch.len());
            if let Err(why) = draft.follow(&row) {
                refused.push((row.id, row.actor, why));
            }
            ControlFlow::Continue(())
        },
    )?;
    for (id, actor, why) in refused {
        // Noted before the document can be seen without it. On a full disk, no new document is published until
        // there is room.
        if log::note_refused(connection, id, &why.to_string())? {
            warn!(revision = id, actor, %why, "an invalid revision was skipped");
        }
    }
    Ok(if gap {
        ReadProgress::Gap
    } else {
        ReadProgress::Read
    })
}
