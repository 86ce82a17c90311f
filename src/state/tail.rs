//! The log followed from outside: what other processes write, as they write it.

use std::collections::BTreeSet;
use std::path::Path;

use super::changes::{Changes, Revision};
use super::cursor::{self, Question};
use super::document::Document;
use super::error::StateError;
use super::history::History;
use super::log;
use super::pointer::Pointer;
use super::replay::replay;

/// The most revisions of one piece of news; the rest is the next piece.
const MOST: usize = 1000;

/// A cursor on a database that others write.
#[derive(Debug)]
pub struct Tail {
    history: History,
    scope: Pointer,
    cursor: u64,
    document: Document,
    /// What did not apply when we read it: the server may be later than we to note it, or be stopped. As many
    /// numbers as the log has rows, at most.
    refused: BTreeSet<u64>,
    seen: Option<i64>,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// Revisions that touch the scope, oldest first.
    Revisions(Vec<Revision>),
    /// The log does not reach back to the cursor, or another database has taken the place: the document of
    /// now is where it goes on.
    Resync {
        /// The oldest revision that is kept.
        floor: u64,
    },
}

impl Tail {
    /// Follows the database at `path`: what touches `scope` after the revision `since`, or after now.
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

    /// What has happened since the last call; nothing if nothing has. Does not wait.
    pub fn next(&mut self) -> Result<Option<News>, StateError> {
        if self.history.is_stale() {
            let Ok(history) = History::open(self.history.path()) else {
                // It is being made just now.
                return Ok(None);
            };
            return self.go_over_to(history);
        }
        let version = log::data_version(self.history.connection());
        let version = version.map_err(|error| self.history.said(&error))?;
        if self.seen == Some(version) && self.cursor == self.document.revision {
            return Ok(None);
        }
        self.read_on()?;
        self.seen = Some(version);
        loop {
            match self.ask()? {
                Changes::Resync { floor, upto } => {
                    self.cursor = upto;
                    return Ok(Some(News::Resync { floor }));
                }
                Changes::Revisions {
                    revisions,
                    upto,
                    more,
                } => {
                    self.cursor = upto;
                    if !revisions.is_empty() {
                        return Ok(Some(News::Revisions(revisions)));
                    }
                    if !more {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Follows another file, from its newest revision on unless it is the same database.
    fn go_over_to(&mut self, history: History) -> Result<Option<News>, StateError> {
        let same = history.database_id() == self.history.database_id();
        self.document = history.document()?;
        self.history = history;
        self.refused.clear();
        self.seen = None;
        if same {
            return Ok(None);
        }
        self.cursor = self.document.revision;
        let floor = self.history.kept()?.floor;
        Ok(Some(News::Resync { floor }))
    }

    /// Takes the document forward to the newest revision.
    fn read_on(&mut self) -> Result<(), StateError> {
        let newest = self.history.kept()?.newest;
        let mut refused = Vec::new();
        let path = self.history.path().to_owned();
        let view = self.history.view()?;
        let read = replay(&path, &view, &self.document, u64::MAX, &mut |step| {
            refused.extend(step.outcome.is_err().then_some(step.row.id));
        });
        drop(view);
        self.document = match read {
            Ok(document) if document.revision >= newest => document,
            // Trimmed under us, or taken back: the log is asked what that means for the cursor.
            _ => self.history.document()?,
        };
        self.refused.extend(refused);
        Ok(())
    }

    fn ask(&self) -> Result<Changes, StateError> {
        let question = Question {
            after: self.cursor,
            scope: &self.scope,
            most: MOST,
        };
        let reader = self.history.connection();
        cursor::answer(reader, &self.document, &question, &mut |id| {
            Ok(self.refused.contains(&id) || log::is_refused(reader, id)?)
        })
        .map_err(|error| self.history.said(&error))
    }
}
