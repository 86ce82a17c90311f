//! The state shared by readers and the writer: the newest document, recent changes, and the revision watch.

use std::cmp::Ordering;
use std::mem;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};

use rusqlite::Connection;
use tokio::sync::watch;

use super::author_seal::AuthorKey;
use super::changes::{Revision, RevisionsSince, TimeCursor};
use super::cursor::{self, RevisionQuery};
use super::document::{Document, Draft, SpareDocument};
use super::error::StateError;
use super::log;
use super::operation::PatchOperation;
use super::patch::Patch;
use super::pointer::Pointer;
use super::recent::{ChangeLookup, RecentEffects};
use super::visibility::{Visibility, VisibleExtent};
use gatewren_base::sys::{lock, read_lock, write_lock};

/// The most revisions that are read from the log on behalf of one subscriber; one that is further behind is
/// notified without a check. After a restart, a thousand subscribers may return at once, each with many resources.
const MAX_LOOK: u64 = 256;

/// The state as readers see it.
#[derive(Debug)]
pub struct SharedState {
    path: PathBuf,
    document: RwLock<Arc<Document>>,
    recent: Mutex<RecentEffects>,
    newest_revision: watch::Sender<u64>,
    reader: Mutex<Connection>,
    author_key: OnceLock<AuthorKey>,
}

impl SharedState {
    /// Returns the state at `document`, with a connection for reading the log.
    pub fn new(path: &Path, document: Document, recent: RecentEffects, reader: Connection) -> Self {
        Self {
            path: path.to_owned(),
            newest_revision: watch::Sender::new(document.revision),
            document: RwLock::new(Arc::new(document)),
            recent: Mutex::new(recent),
            reader: Mutex::new(reader),
            author_key: OnceLock::new(),
        }
    }

    /// Seals revisions with this key from now on; a second key is ignored.
    pub fn set_author_key(&self, key: AuthorKey) {
        // It is set once, where the server is built.
        let _ = self.author_key.set(key);
    }

    /// The key that seals what the server writes.
    pub fn author_key(&self) -> Option<&AuthorKey> {
        self.author_key.get()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The newest document.
    pub fn document(&self) -> Arc<Document> {
        // The lock is held only while a pointer is copied, here and in `publish`: no caller waits.
        let document = read_lock(&self.document);
        Arc::clone(&document)
    }

    /// The number of the newest revision; the receiver wakes on every change.
    pub fn watch_revision(&self) -> watch::Receiver<u64> {
        self.newest_revision.subscribe()
    }

    /// Publishes a draft as the newest document and wakes the receivers. The returned previous document can be
    /// reused for the next one.
    pub fn publish(&self, draft: Draft) -> SpareDocument {
        let mut recent = self.recent();
        for (id, changes) in draft.changed {
            recent.push(id, changes);
        }
        drop(recent);
        let newest = Arc::new(draft.document);
        let before = self.set(Arc::clone(&newest));
        SpareDocument::new(before, draft.applied, &newest)
    }

    /// Restarts with another document, after another program cut the log.
    pub fn restart(&self, document: Document, recent: RecentEffects) {
        *self.recent() = recent;
        self.set(Arc::new(document));
    }

    /// Returns the newest revision after `after` that changed `scope`.
    pub fn newest_change(&self, scope: &Pointer, after: u64) -> Option<u64> {
        let now = self.document().revision;
        match after.cmp(&now) {
            Ordering::Less => {}
            Ordering::Equal => return None,
            // The cursor is of another database, before this one was rebuilt.
            Ordering::Greater => return Some(now),
        }
        let touch = self.recent().find_change(scope, after);
        match touch {
            ChangeLookup::At(id) => Some(id),
            ChangeLookup::No => None,
            // If the log cannot answer, the answer is yes: a needless read is better than a missed change.
            ChangeLookup::ForgottenBefore(known) => self
                .newest_change_in_log(
                    &Visibility::whole(),
                    scope,
                    after.saturating_add(1)..=known.min(now),
                )
                .unwrap_or(Some(now)),
        }
    }

    /// Returns the newest revision of `ids`, except the first, that changed the visible value at `scope`.
    ///
    /// If the cursor is too far behind for the log to be read, it returns the last revision that is not in memory.
    pub fn newest_visible_change(
        &self,
        visibility: &Visibility,
        scope: &Pointer,
        ids: RangeInclusive<u64>,
    ) -> Option<u64> {
        let (after, last) = (*ids.start(), *ids.end());
        let touch = self.recent().find_visible_change(visibility, scope, ids);
        match touch {
            ChangeLookup::At(id) => Some(id),
            ChangeLookup::No => None,
            ChangeLookup::ForgottenBefore(known) => {
                let before = known.min(last);
                self.newest_change_in_log(visibility, scope, after.saturating_add(1)..=before)
                    .unwrap_or(Some(before))
            }
        }
    }

    /// Returns the newest revision of `ids`, except the first, that changed anything visible. If no revision in
    /// memory did, it returns the last one that is not in memory.
    pub fn newest_visible(&self, visibility: &Visibility, ids: RangeInclusive<u64>) -> u64 {
        let (after, last) = (*ids.start(), *ids.end());
        let recent = self.recent();
        let after = after.max(recent.known_after());
        match recent.find_visible_change(visibility, &Pointer::root(), after..=last) {
            ChangeLookup::At(id) => id,
            ChangeLookup::No | ChangeLookup::ForgottenBefore(_) => after.min(last),
        }
    }

    /// Answers a query of the log.
    pub fn changes(&self, question: &RevisionQuery<'_>) -> Result<RevisionsSince, StateError> {
        let now = self.document();
        let reader = self.reader();
        let to_error = |error| StateError::sqlite(&self.path, &error);
        let answer = cursor::answer(&reader, &now, question, &mut |id| {
            log::is_refused(&reader, id)
        });
        let mut answer = answer.map_err(to_error)?;
        if let RevisionsSince::Revisions { revisions, .. } = &mut answer {
            self.prove(&reader, question.visibility, revisions)
                .map_err(to_error)?;
        }
        Ok(answer)
    }

    /// Replaces the actors of revisions without a valid seal, if there is a key. Only the revisions of the answer
    /// are checked: a seal covers the whole patch.
    fn prove(
        &self,
        reader: &Connection,
        visibility: &Visibility,
        revisions: &mut [Revision],
    ) -> rusqlite::Result<()> {
        let Some(key) = self.author_key() else {
            return Ok(());
        };
        for revision in revisions {
            if let Some(row) = log::row(reader, revision.id)? {
                revision.actor = visibility.author(key.author(reader, &row)?);
            }
        }
        Ok(())
    }

    /// Returns the cursor for everything since a time.
    pub fn cursor_at(&self, at_ms: u64) -> Result<TimeCursor, StateError> {
        let newest = self.document().revision;
        let reader = self.reader();
        let read = || -> rusqlite::Result<TimeCursor> {
            let first = log::first_since(&reader, at_ms)?;
            let oldest = log::kept_range(&reader)?.map(|(oldest, _)| oldest);
            Ok(TimeCursor {
                after: first.map_or(newest, |first| first.saturating_sub(1)),
                // The first revision of all is never missing, so nothing is older than it.
                is_complete: first.is_none_or(|first| Some(first) != oldest || first == 1),
            })
        };
        read().map_err(|error| StateError::sqlite(&self.path, &error))
    }

    /// Reads once through SQLite.
    pub fn read_once(&self) -> Result<(), StateError> {
        log::kept_range(&self.reader())
            .map(|_| ())
            .map_err(|error| StateError::sqlite(&self.path, &error))
    }

    fn newest_change_in_log(
        &self,
        visibility: &Visibility,
        scope: &Pointer,
        ids: RangeInclusive<u64>,
    ) -> Result<Option<u64>, StateError> {
        let to_error = |error| StateError::sqlite(&self.path, &error);
        let reader = self.reader();
        let complete = log::kept_range(&reader)
            .map_err(to_error)?
            .is_some_and(|(oldest, _)| oldest <= *ids.start());
        if !complete || ids.end() - ids.start() > MAX_LOOK {
            return Ok(Some(*ids.end()));
        }
        let mut newest = None;
        log::walk(&reader, ids, &mut |row| {
            let patch = Patch::parse(&row.patch).unwrap_or_default();
            if patch
                .operations()
                .iter()
                .any(|operation| overlaps(operation, visibility, scope))
            {
                newest = Some(row.id);
            }
            ControlFlow::Continue(())
        })
        .map_err(to_error)?;
        Ok(newest)
    }

    /// Publishes the newest document and wakes the receivers; returns the previous one.
    fn set(&self, document: Arc<Document>) -> Arc<Document> {
        let revision = document.revision;
        let mut newest = write_lock(&self.document);
        let before = mem::replace(&mut *newest, document);
        drop(newest);
        self.newest_revision.send_replace(revision);
        before
    }

    fn recent(&self) -> MutexGuard<'_, RecentEffects> {
        lock(&self.recent)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        lock(&self.reader)
    }
}

/// Returns whether an operation may change the visible value at `scope`, judged only by its path. An insertion into
/// a list may move all of its elements.
fn overlaps(operation: &PatchOperation, visibility: &Visibility, scope: &Pointer) -> bool {
    let at = operation.path();
    if [at, scope]
        .map(|place| visibility.extent(place))
        .contains(&VisibleExtent::Nothing)
    {
        return false;
    }
    let list = at.split_last().is_some_and(|(list, key)| {
        key.bytes().all(|b| b.is_ascii_digit() || b == b'-') && list.covers(scope)
    });
    scope.covers(at) || at.covers(scope) || list
}
