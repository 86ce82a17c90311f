//! Follows the log from another process: returns revisions as other processes write them.

use std::collections::BTreeSet;
use std::path::Path;

use super::changes::{Revision, RevisionsSince};
use super::cursor::{self, RevisionQuery};
use super::document::Document;
use super::error::StateError;
use super::history::History;
use super::log;
use super::pointer::Pointer;
use super::replay::replay;
use super::visibility::Visibility;

/// The most revisions of one result; the next call returns the rest.
const MOST: usize = 1000;

/// A cursor on a database that other processes write.
#[derive(Debug)]
pub struct StateLogFollower {
    history: History,
    scope: Pointer,
    cursor: u64,
    document: Document,
    /// Revisions that did not apply when this process read them: the server may note them later, or not be running.
    /// It holds at most as many numbers as the log has rows.
    refused: BTreeSet<u64>,
    seen: Option<i64>,
}

/// What has happened since the last call.
#[derive(Debug, Clone, PartialEq)]
pub enum StateLogUpdate {
    /// Revisions that touch the scope, oldest first.
    Revisions(Vec<Revision>),
    /// The log does not reach back to the cursor, or another database has replaced this one. Following continues
    /// from the current document.
    Resync {
        /// The oldest revision that is kept.
        floor: u64,
    },
}

impl StateLogFollower {
    /// Follows the database at `path`: returns what touches `scope` after the revision `since`, or after now.
    pub fn open(path: &Path, scope: Pointer, since: Option<u64>) -> Result<Self, StateError> {
        let history = History::open(path)?;
        let document = history.document()?;
        Ok(Self {
            cursor: since.unwrap_or(document.revision),
            history,
            scope,
            document,
            refused: BTreeSet::new(),
            seen: None,
        })
    }

    /// The id of the database that is followed now.
    pub fn database_id(&self) -> &str {
        self.history.database_id()
    }

    /// The newest document that was read.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// Returns what has happened since the last call; `None` if nothing has. Does not wait.
    pub fn read(&mut self) -> Result<Option<StateLogUpdate>, StateError> {
        if self.history.is_stale() {
            let Ok(history) = History::open(self.history.path()) else {
                // The database is just being created.
                return Ok(None);
            };
            return self.switch_to(history);
        }
        let version = log::data_version(self.history.connection());
        let version = version.map_err(|error| self.history.read_error(&error))?;
        if self.seen == Some(version) && self.cursor == self.document.revision {
            return Ok(None);
        }
        self.read_on()?;
        self.seen = Some(version);
        loop {
            match self.ask()? {
                RevisionsSince::Resync { floor, upto } => {
                    self.cursor = upto;
                    return Ok(Some(StateLogUpdate::Resync { floor }));
                }
                RevisionsSince::Revisions {
                    revisions,
                    upto,
                    more,
                } => {
                    self.cursor = upto;
                    if !revisions.is_empty() {
                        return Ok(Some(StateLogUpdate::Revisions(revisions)));
                    }
                    if !more {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Switches to another file, and continues from its newest revision unless it is the same database.
    fn switch_to(&mut self, history: History) -> Result<Option<StateLogUpdate>, StateError> {
        let same = history.database_id() == self.history.database_id();
        self.document = history.document()?;
        self.history = history;
        self.refused.clear();
        self.seen = None;
        if same {
            return Ok(None);
        }
        self.cursor = self.document.revision;
        let floor = self.history.kept_revisions()?.floor;
        Ok(Some(StateLogUpdate::Resync { floor }))
    }

    /// Advances the document to the newest revision.
    fn read_on(&mut self) -> Result<(), StateError> {
        let newest = self.history.kept_revisions()?.newest;
        let mut refused = Vec::new();
        let path = self.history.path().to_owned();
        let view = self.history.view()?;
        let read = replay(&path, &view, &self.document, u64::MAX, &mut |step| {
            refused.extend(step.outcome.is_err().then_some(step.row.id));
        });
        drop(view);
        self.document = match read {
            Ok(document) if document.revision >= newest => document,
            // The log was trimmed or truncated while it was read: the query decides what that means for the cursor.
            _ => self.history.document()?,
        };
        self.refused.extend(refused);
        Ok(())
    }

    fn ask(&self) -> Result<RevisionsSince, StateError> {
        let question = RevisionQuery {
            after: self.cursor,
            upto: u64::MAX,
            visibility: &Visibility::whole(),
            scope: &self.scope,
            most: MOST,
        };
        let reader = self.history.connection();
        cursor::answer(reader, &self.document, &question, &mut |id| {
            Ok(self.refused.contains(&id) || log::is_refused(reader, id)?)
        })
        .map_err(|error| self.history.read_error(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::super::store::State;
    use super::super::testing::{add, at, database, foreign, insert, trim};
    use super::*;

    fn ids(update: Option<StateLogUpdate>) -> Vec<u64> {
        match update {
            Some(StateLogUpdate::Revisions(revisions)) => revisions.iter().map(|r| r.id).collect(),
            None => Vec::new(),
            Some(StateLogUpdate::Resync { .. }) => panic!("{update:?}"),
        }
    }

    #[test]
    fn what_another_process_writes_is_followed() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/a", &json!(1));
        let mut from_now = StateLogFollower::open(&path, at("/public"), None).unwrap();
        let mut from_begin = StateLogFollower::open(&path, at("/public/a"), Some(0)).unwrap();
        assert_eq!(from_now.read().unwrap(), None);
        assert_eq!(ids(from_begin.read().unwrap()), [1]);
        add(&other, "/public/b", &json!(1));
        add(&other, "/public/a", &json!(2));
        assert_eq!(ids(from_now.read().unwrap()), [2, 3]);
        assert_eq!(ids(from_begin.read().unwrap()), [3]);
        assert_eq!(from_begin.read().unwrap(), None);
        assert_eq!(
            from_now.document().root,
            json!({"public": {"a": 2, "b": 1}})
        );
    }

    #[test]
    fn a_revision_that_does_not_apply_is_not_news_whoever_notes_it() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        let mut tail = StateLogFollower::open(&path, at("/public"), None).unwrap();
        insert(
            &other,
            "local:x",
            &json!([{"op": "replace", "path": "/public/none", "value": 1}]),
        );
        assert_eq!(tail.read().unwrap(), None);
        add(&other, "/public/a", &json!(1));
        assert_eq!(ids(tail.read().unwrap()), [2]);
    }

    #[test]
    fn many_revisions_come_in_pieces_and_whole() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        other.execute_batch("BEGIN").unwrap();
        for n in 0..2500 {
            add(&other, "/public/a", &json!(n));
        }
        other.execute_batch("COMMIT").unwrap();
        let mut tail = StateLogFollower::open(&path, Pointer::root(), Some(0)).unwrap();
        let mut seen = Vec::new();
        while let Some(update) = tail.read().unwrap() {
            let piece = ids(Some(update));
            assert!(piece.len() <= MOST);
            seen.extend(piece);
        }
        assert_eq!(seen, (1..=2500).collect::<Vec<_>>());
    }

    #[test]
    fn a_cursor_below_the_floor_or_of_another_database_is_told_to_begin_again() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        for n in 1..=10 {
            add(&other, "/public/n", &json!(n));
        }
        trim(&other, 8, &json!({"public": {"n": 8}}));
        let mut tail = StateLogFollower::open(&path, at("/public"), Some(3)).unwrap();
        assert_eq!(
            tail.read().unwrap(),
            Some(StateLogUpdate::Resync { floor: 9 })
        );
        assert_eq!(tail.document().root, json!({"public": {"n": 10}}));
        add(&other, "/public/n", &json!(11));
        assert_eq!(ids(tail.read().unwrap()), [11]);
        drop(other);

        let id = tail.database_id().to_owned();
        for end in ["", "-wal", "-shm"] {
            let beside = scratch.join(&format!("state.db{end}"));
            let _ = fs::rename(&beside, scratch.join(&format!("aside{end}")));
        }
        assert_eq!(tail.read().unwrap(), None, "nothing there yet");
        drop(State::open(&path).unwrap());
        assert_eq!(
            tail.read().unwrap(),
            Some(StateLogUpdate::Resync { floor: 1 })
        );
        assert_ne!(tail.database_id(), id);
        add(&foreign(&path), "/public/new", &json!(1));
        assert_eq!(ids(tail.read().unwrap()), [1]);
    }
}
