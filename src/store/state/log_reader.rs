//! A reader of the state's log that keeps its connection open between queries.

use std::path::PathBuf;
use std::sync::Mutex;

use super::error::StateError;
use super::history::{History, HistoryEntry, HistoryFilter, KeptRevisions};
use super::store::State;
use gatewren_base::sys::lock;

/// Opens the database at the first query, and again after another file has replaced it.
///
/// A query needs the document to resolve places in lists. In a running server the document is in memory; a reader of a
/// file replays it from the newest snapshot, for each query.
#[derive(Debug)]
pub struct StateLogReader {
    path: PathBuf,
    server: Option<State>,
    open: Mutex<Option<History>>,
}

impl StateLogReader {
    /// Returns a reader of a file.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            server: None,
            open: Mutex::new(None),
        }
    }

    /// Returns a reader in the process of the server that writes the file.
    pub fn beside(server: &State) -> Self {
        Self {
            server: Some(server.clone()),
            ..Self::at(server.path().to_owned())
        }
    }

    /// Returns entries of the log, newest first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, StateError> {
        let document = self.server.as_ref().map(State::document);
        self.read(|history| match &document {
            Some(document) => history.log_beside(filter, &document.root),
            None => history.log(filter),
        })
    }

    /// Returns the range that is kept.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn kept_revisions(&self) -> Result<KeptRevisions, StateError> {
        self.read(History::kept_revisions)
    }

    fn read<T>(
        &self,
        read: impl FnOnce(&History) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let mut open = lock(&self.open);
        let current = open.take().filter(|history| !history.is_stale());
        let history = current.map_or_else(|| History::open(&self.path), Ok)?;
        read(open.insert(history))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use gatewren_base::sys::Scratch;

    use super::super::author::{Actor, Author};
    use super::super::testing::{add, at, database, foreign};
    use super::*;

    fn ids(reader: &StateLogReader, place: &str) -> Vec<u64> {
        let filter = HistoryFilter {
            scope: at(place),
            most: 10,
            ..HistoryFilter::default()
        };
        let entries = reader.entries(&filter).unwrap();
        entries.iter().map(|entry| entry.revision.id).collect()
    }

    #[test]
    fn a_file_that_takes_the_name_is_read_instead() {
        let scratch = Scratch::new();
        let path = database(&scratch);
        let other = foreign(&path);
        add(&other, "/public/a", &json!(1));
        let reader = StateLogReader::at(path.clone());
        assert_eq!(ids(&reader, "/public/a"), [1]);
        add(&other, "/public/a", &json!(2));
        assert_eq!(ids(&reader, "/public/a"), [2, 1]);
        drop(other);
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            let _ = fs::remove_file(scratch.join(name));
        }
        assert!(
            reader.kept_revisions().is_ok(),
            "what is gone is still open"
        );
        let path = database(&scratch);
        add(&foreign(&path), "/public/b", &json!(1));
        assert_eq!(ids(&reader, "/public/a"), Vec::<u64>::new());
        assert_eq!(ids(&reader, "/public/b"), [1]);
    }

    #[tokio::test]
    async fn beside_a_server_it_finds_what_a_reader_of_the_file_finds() {
        let scratch = Scratch::new();
        let state = State::open(&database(&scratch)).unwrap();
        let author = Author::from(Actor::Owner);
        for (place, value) in [
            ("/public/list", json!([1, 2])),
            ("/public/list/0", json!(3)),
            ("/public/other", json!(1)),
        ] {
            state.put(&author, &at(place), Some(value)).await.unwrap();
        }
        let (beside, file) = (
            StateLogReader::beside(&state),
            StateLogReader::at(state.path().to_owned()),
        );
        for place in ["/public/list", "/public/list/1", "/public/other", ""] {
            assert_eq!(ids(&beside, place), ids(&file, place), "{place}");
        }
        assert_eq!(ids(&beside, "/public/other"), [3]);
    }
}
