//! Reads the state database from outside: past documents and the log, with or without a running server.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};
use serde::Serialize;
use serde_json::Value;

use super::author_seal::AuthorKey;
use super::changes::Revision;
use super::document::Document;
use super::error::StateError;
use super::external_open::{ReadOnlyDatabase, has_log_of_its_own, open_to_look};
use super::log::{self, LogRow};
use super::patch::Patch;
use super::pointer::Pointer;
use super::replay::{replay, snapshot_before};

/// A state database that is only read. A server that runs, starts or stops at the same time is not disturbed.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    looked: ReadOnlyDatabase,
    identity: Identity,
    author_key: Option<AuthorKey>,
}

/// Device and inode of the file; a damaged database is replaced by another file of the same name.
type Identity = (u64, u64);

/// Which entries of the log to return.
#[derive(Debug, Clone, Default)]
pub struct HistoryFilter {
    /// Only entries that touch this place.
    pub scope: Pointer,
    /// Only entries after this revision.
    pub after: u64,
    /// Only entries of this actor.
    pub actor: Option<String>,
    /// The most entries to return, newest first.
    pub most: usize,
}

/// A revision as recorded in the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryEntry {
    /// The revision; its patch is empty if it is not a valid patch.
    #[serde(flatten)]
    pub revision: Revision,
    /// Why it does not apply and changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The range of revisions that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct KeptRevisions {
    /// The oldest revision in the log; if the log is empty, one more than the newest revision.
    pub floor: u64,
    /// The oldest revision whose document can be shown.
    pub oldest_document: u64,
    /// The newest revision.
    pub newest: u64,
}

impl History {
    /// Opens the database at `path` for reading.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        let identity = identity(path)?;
        let looked = open_to_look(path)?;
        Ok(Self {
            path: path.to_owned(),
            looked,
            identity,
            author_key: None,
        })
    }

    /// Verifies authors with the key of these bytes. Without it, the actor of a revision counts as its author.
    #[must_use]
    pub fn proving(self, key: &[u8; 32]) -> Self {
        let key = AuthorKey::new(key, self.database_id());
        self.proving_with(Some(key))
    }

    /// Like `proving`, with the server's key.
    #[must_use]
    pub(super) fn proving_with(self, author_key: Option<AuthorKey>) -> Self {
        Self { author_key, ..self }
    }

    /// Returns who wrote a revision.
    pub(super) fn author(&self, connection: &Connection, row: &LogRow) -> rusqlite::Result<String> {
        match &self.author_key {
            Some(key) => key.author(connection, row),
            None => Ok(row.actor.clone()),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The id that the database got when it was created.
    pub fn database_id(&self) -> &str {
        &self.looked.database_id
    }

    /// Returns whether the database must be opened again: another file has taken its name, or a server has begun to
    /// write a database that was opened frozen.
    pub fn is_stale(&self) -> bool {
        let replaced = identity(&self.path).is_ok_and(|now| now != self.identity);
        replaced || (self.looked.frozen && has_log_of_its_own(&self.path))
    }

    /// Returns the range that is kept.
    pub fn kept_revisions(&self) -> Result<KeptRevisions, StateError> {
        kept_revisions(&self.looked.connection).map_err(|error| self.read_error(&error))
    }

    /// Returns the newest document.
    pub fn document(&self) -> Result<Document, StateError> {
        let view = self.view()?;
        let newest = log::newest(&view).map_err(|error| self.read_error(&error))?;
        self.at_in(&view, newest)
    }

    /// Returns the document at `revision`.
    pub fn at(&self, revision: u64) -> Result<Document, StateError> {
        self.at_in(&self.view()?, revision)
    }

    /// Returns entries of the log, newest first.
    pub fn log(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, StateError> {
        let document = self.document()?;
        self.log_beside(filter, &document.root)
    }

    /// Like [`History::log`], but with a document that the caller has. It only resolves places in lists.
    pub(super) fn log_beside(
        &self,
        filter: &HistoryFilter,
        document: &Value,
    ) -> Result<Vec<HistoryEntry>, StateError> {
        let view = self.view()?;
        let newest = log::newest(&view).map_err(|error| self.read_error(&error))?;
        let mut entries = Vec::new();
        let mut refusal = Ok(None);
        log::walk_back(
            &view,
            filter.after.saturating_add(1)..=newest,
            &mut |mut row| {
                if filter
                    .actor
                    .as_ref()
                    .is_some_and(|actor| *actor != row.actor)
                {
                    return ControlFlow::Continue(());
                }
                refusal = log::refusal(&view, row.id).and_then(|refused| {
                    row.actor = self.author(&view, &row)?;
                    Ok(refused)
                });
                let Ok(refused) = &mut refusal else {
                    return ControlFlow::Break(());
                };
                entries.extend(entry(row, refused.take(), &filter.scope, document));
                if entries.len() >= filter.most {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            },
        )
        .and(refusal)
        .map_err(|error| self.read_error(&error))?;
        Ok(entries)
    }

    /// Visits every entry of the log as recorded, oldest first, until `visit` breaks.
    pub fn whole_log(
        &self,
        visit: &mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
    ) -> Result<(), StateError> {
        let view = self.view()?;
        let mut refusal = Ok(None);
        log::walk(&view, 0..=u64::MAX, &mut |row| {
            refusal = log::refusal(&view, row.id);
            match &mut refusal {
                Ok(refused) => visit(HistoryEntry {
                    refused: refused.take(),
                    revision: whole(row),
                }),
                Err(_) => ControlFlow::Break(()),
            }
        })
        .and(refusal.map(|_| ()))
        .map_err(|error| self.read_error(&error))
    }

    /// The connection, for the other queries of this module.
    pub(super) fn connection(&self) -> &Connection {
        &self.looked.connection
    }

    /// Starts a transaction: one consistent view for several statements.
    pub(super) fn view(&self) -> Result<Transaction<'_>, StateError> {
        self.looked
            .connection
            .unchecked_transaction()
            .map_err(|error| self.read_error(&error))
    }

    pub(super) fn read_error(&self, error: &rusqlite::Error) -> StateError {
        StateError::sqlite(&self.path, error)
    }

    fn at_in(&self, view: &Transaction<'_>, revision: u64) -> Result<Document, StateError> {
        let kept = kept_revisions(view).map_err(|error| self.read_error(&error))?;
        if revision > kept.newest {
            let newest = kept.newest;
            return Err(StateError::NotYet { revision, newest });
        }
        let Some(snapshot) = snapshot_before(&self.path, view, revision)? else {
            let oldest = kept.oldest_document;
            return Err(StateError::Trimmed { revision, oldest });
        };
        replay(&self.path, view, &snapshot, revision, &mut |_| {})
    }
}

/// Returns the range of revisions and documents that is kept.
pub fn kept_revisions(connection: &Connection) -> rusqlite::Result<KeptRevisions> {
    let newest = log::newest(connection)?;
    let floor = log::kept_range(connection)?.map_or(newest + 1, |(oldest, _)| oldest);
    let oldest: i64 = connection.query_row(
        "SELECT coalesce(min(revision), 0) FROM snapshot",
        [],
        |row| row.get(0),
    )?;
    Ok(KeptRevisions {
        floor,
        oldest_document: u64::try_from(oldest).unwrap_or_default(),
        newest,
    })
}

/// Returns the row as an entry, if it touches `scope`.
fn entry(
    row: LogRow,
    refused: Option<String>,
    scope: &Pointer,
    document: &Value,
) -> Option<HistoryEntry> {
    let revision = if scope.tokens().is_empty() {
        whole(row)
    } else {
        Revision::touching(scope, row, document)?
    };
    Some(HistoryEntry { revision, refused })
}

fn whole(row: LogRow) -> Revision {
    Revision {
        id: row.id,
        at_ms: row.at_ms,
        actor: row.actor,
        cause: row.cause,
        patch: Patch::parse(&row.patch).unwrap_or_default(),
    }
}

fn identity(path: &Path) -> Result<Identity, StateError> {
    let metadata = fs::metadata(path).map_err(|error| StateError::io(path, &error))?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use gatewren_base::sys::{Scratch, is_root};

    use super::super::store::State;
    use super::super::testing::{add, at, database, foreign, insert, trim};
    use super::*;

    fn all_entries(history: &History) -> Vec<HistoryEntry> {
        let mut entries = Vec::new();
        let visit = &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        };
        history.whole_log(visit).unwrap();
        entries
    }

    #[test]
    fn the_document_is_shown_as_it_was_at_each_revision_that_is_kept() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        for n in 1..=5 {
            add(&other, "/public/n", &json!(n));
        }
        let history = History::open(&path).unwrap();
        assert_eq!(history.at(0).unwrap().root, json!({"public": {}}));
        for n in 1..=5 {
            let document = history.at(n).unwrap();
            assert_eq!(document.root, json!({"public": {"n": n}}));
            assert_eq!((document.revision, document.at_ms), (n, 7));
        }
        assert_eq!(history.document().unwrap(), history.at(5).unwrap());
        let error = history.at(6).unwrap_err();
        assert_eq!(
            error,
            StateError::NotYet {
                revision: 6,
                newest: 5
            }
        );

        trim(&other, 3, &json!({"public": {"n": 3}}));
        assert_eq!(history.at(4).unwrap().root, json!({"public": {"n": 4}}));
        let error = history.at(2).unwrap_err();
        assert_eq!(
            error,
            StateError::Trimmed {
                revision: 2,
                oldest: 3
            }
        );
        let kept = history.kept_revisions().unwrap();
        assert_eq!((kept.floor, kept.oldest_document, kept.newest), (4, 3, 5));
    }

    #[test]
    fn the_log_is_searched_by_place_actor_and_cursor() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/a", &json!({"x": 1}));
        add(&other, "/public/b", &json!(1));
        insert(
            &other,
            "local:else",
            &json!([{"op": "replace", "path": "/public/a/x", "value": 2}]),
        );
        insert(
            &other,
            "local:test",
            &json!([{"op": "remove", "path": "/public/nothing"}]),
        );
        // The server notes revisions that do not apply.
        drop(State::open(&path).unwrap());

        let history = History::open(&path).unwrap();
        let ids = |after, place: &str, actor: Option<&str>, most| -> Vec<u64> {
            let filter = HistoryFilter {
                scope: at(place),
                after,
                actor: actor.map(str::to_owned),
                most,
            };
            let entries = history.log(&filter).unwrap();
            entries.iter().map(|entry| entry.revision.id).collect()
        };
        assert_eq!(ids(0, "", None, 100), [4, 3, 2, 1]);
        assert_eq!(ids(0, "", None, 2), [4, 3]);
        assert_eq!(ids(2, "", None, 100), [4, 3]);
        assert_eq!(ids(0, "/public/a", None, 100), [3, 1]);
        assert_eq!(ids(0, "", Some("local:else"), 100), [3]);
        assert!(ids(0, "", Some("owner"), 100).is_empty());
        // What was written above the place is shown as it was written.
        let whole = json!([{"op": "add", "path": "/public", "value": {"c": 1}}]);
        insert(&other, "local:else", &whole);
        let filter = HistoryFilter {
            scope: at("/public/a"),
            most: 1,
            ..HistoryFilter::default()
        };
        let entry = history.log(&filter).unwrap().remove(0);
        assert_eq!(serde_json::to_value(entry.revision.patch).unwrap(), whole);

        let entries = all_entries(&history);
        assert_eq!(entries.len(), 5);
        assert!(
            entries[3]
                .refused
                .as_ref()
                .unwrap()
                .contains("path not found")
        );
        assert!(
            entries[..3]
                .iter()
                .chain(&entries[4..])
                .all(|entry| entry.refused.is_none())
        );
    }

    #[test]
    fn looking_writes_nothing_and_needs_no_right_to() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        add(&foreign(&path), "/public/a", &json!(1));
        let folder = scratch.path();
        let before = fs::read(&path).unwrap();
        let mode = |mode| fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
        mode(0o555);
        let seen = History::open(&path).and_then(|history| history.document());
        mode(0o755);
        assert_eq!(seen.unwrap().root, json!({"public": {"a": 1}}));
        assert_eq!(fs::read(&path).unwrap(), before);
        if !is_root() {
            assert!(!has_log_of_its_own(&path));
        }
    }

    #[test]
    fn what_is_no_state_database_says_so() {
        let scratch = Scratch::new();
        let path = scratch.join("state.db");
        assert!(matches!(
            History::open(&path),
            Err(StateError::Unreadable { .. })
        ));
        fs::write(&path, "").unwrap();
        assert_eq!(
            History::open(&path).unwrap_err(),
            StateError::NotOurs(path.clone())
        );
        fs::write(&path, "text".repeat(999)).unwrap();
        assert_eq!(
            History::open(&path).unwrap_err(),
            StateError::NotADatabase(path.clone())
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "text".repeat(999));
    }
}
