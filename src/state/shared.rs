//! What readers and the writer have in common: the newest document, what changed lately, and the bell.

use std::cmp::Ordering;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rusqlite::Connection;
use tokio::sync::watch;

use super::changes::{Changes, Revision};
use super::document::{Document, Draft};
use super::error::StateError;
use super::log;
use super::operation::Operation;
use super::patch::Patch;
use super::pointer::Pointer;
use super::recent::{Recent, Touch};

/// The most revisions that one question reads from the log; the rest is asked for with the next cursor.
const MAX_SCAN: u64 = 10_000;

/// The most JSON text of one answer's revisions, in bytes, but for the first; the rest is asked for next.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// The state as readers see it.
#[derive(Debug)]
pub struct Shared {
    path: PathBuf,
    document: RwLock<Arc<Document>>,
    recent: Mutex<Recent>,
    bell: watch::Sender<u64>,
    reader: Mutex<Connection>,
}

impl Shared {
    /// The state at `document`, with a connection for reading the log.
    pub fn new(path: &Path, document: Document, recent: Recent, reader: Connection) -> Self {
        Self {
            path: path.to_owned(),
            bell: watch::Sender::new(document.revision),
            document: RwLock::new(Arc::new(document)),
            recent: Mutex::new(recent),
            reader: Mutex::new(reader),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The newest document.
    pub fn document(&self) -> Arc<Document> {
        // Held for the copy of a pointer, here and in `publish`: nobody waits.
        let document = self.document.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&document)
    }

    /// The number of the newest revision, with a wake-up whenever it moves.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    /// Makes a draft the newest document and rings.
    pub fn publish(&self, draft: Draft) {
        let mut recent = self.recent();
        for (id, changes) in draft.changed {
            recent.push(id, changes);
        }
        drop(recent);
        self.set(draft.document);
    }

    /// Begins again with another document, after the log was cut behind our back.
    pub fn restart(&self, document: Document, recent: Recent) {
        *self.recent() = recent;
        self.set(document);
    }

    /// The newest revision after `after` that changed `scope`.
    pub fn touched(&self, scope: &Pointer, after: u64) -> Option<u64> {
        let now = self.document().revision;
        match after.cmp(&now) {
            Ordering::Less => {}
            Ordering::Equal => return None,
            // Of another database, before this one was built anew.
            Ordering::Greater => return Some(now),
        }
        let touch = self.recent().touched(scope, after);
        match touch {
            Touch::At(id) => Some(id),
            Touch::No => None,
            // What cannot be answered is answered with yes: a needless look is better than a missed one.
            Touch::ForgottenBefore(known) => self
                .logged_touch(scope, after.saturating_add(1)..=known.min(now))
                .unwrap_or(Some(now)),
        }
    }

    /// The revisions after `after` that touch `scope`, at most `most`.
    pub fn changes_since(
        &self,
        after: u64,
        scope: &Pointer,
        most: usize,
    ) -> Result<Changes, StateError> {
        let now = self.document();
        let reader = self.reader();
        let said = |error| StateError::sqlite(&self.path, &error);
        let kept = log::kept(&reader).map_err(said)?;
        let floor = kept.map_or(now.revision + 1, |(oldest, _)| oldest);
        if after > now.revision || after.saturating_add(1) < floor {
            return Ok(Changes::Resync {
                floor,
                upto: now.revision,
            });
        }
        let last = now.revision.min(after.saturating_add(MAX_SCAN));
        let mut answer = Answer {
            revisions: Vec::new(),
            upto: last,
            bytes: 0,
        };
        let mut refused = Ok(false);
        log::walk(&reader, after.saturating_add(1)..=last, &mut |row| {
            refused = log::is_refused(&reader, row.id);
            match refused {
                Ok(false) => answer.take(row, scope, &now.root, most.max(1)),
                Ok(true) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })
        .map_err(said)?;
        refused.map_err(said)?;
        let Answer {
            revisions, upto, ..
        } = answer;
        Ok(Changes::Revisions {
            revisions,
            upto,
            more: upto < now.revision,
        })
    }

    /// Reads something through SQLite.
    pub fn read_once(&self) -> Result<(), StateError> {
        log::kept(&self.reader())
            .map(|_| ())
            .map_err(|error| StateError::sqlite(&self.path, &error))
    }

    fn logged_touch(
        &self,
        scope: &Pointer,
        ids: RangeInclusive<u64>,
    ) -> Result<Option<u64>, StateError> {
        let said = |error| StateError::sqlite(&self.path, &error);
        let reader = self.reader();
        let complete = log::kept(&reader)
            .map_err(said)?
            .is_some_and(|(oldest, _)| oldest <= *ids.start());
        if !complete || ids.end() - ids.start() > MAX_SCAN {
            return Ok(Some(*ids.end()));
        }
        let mut newest = None;
        log::walk(&reader, ids, &mut |row| {
            let patch = Patch::parse(&row.patch).unwrap_or_default();
            if patch
                .operations()
                .iter()
                .any(|operation| overlaps(operation, scope))
            {
                newest = Some(row.id);
            }
            ControlFlow::Continue(())
        })
        .map_err(said)?;
        Ok(newest)
    }

    fn set(&self, document: Document) {
        let revision = document.revision;
        *self
            .document
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Arc::new(document);
        self.bell.send_replace(revision);
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that grows until it is long enough.
struct Answer {
    revisions: Vec<Revision>,
    upto: u64,
    bytes: usize,
}

impl Answer {
    fn take(
        &mut self,
        row: log::LogRow,
        scope: &Pointer,
        document: &serde_json::Value,
        most: usize,
    ) -> ControlFlow<()> {
        let (id, bytes) = (row.id, row.patch.len());
        let Some(revision) = Revision::within(scope, row, document) else {
            return ControlFlow::Continue(());
        };
        self.bytes += bytes;
        let full = self.revisions.len() >= most || self.bytes > MAX_ANSWER_BYTES;
        if full && !self.revisions.is_empty() {
            self.upto = id - 1;
            return ControlFlow::Break(());
        }
        self.revisions.push(revision);
        ControlFlow::Continue(())
    }
}

/// Whether an operation may change `scope`, by its path alone; an insertion into a list may move all of it.
fn overlaps(operation: &Operation, scope: &Pointer) -> bool {
    let at = operation.path();
    let list = at.split_last().is_some_and(|(list, key)| {
        key.bytes().all(|b| b.is_ascii_digit() || b == b'-') && list.covers(scope)
    });
    scope.covers(at) || at.covers(scope) || list
}
