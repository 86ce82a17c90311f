//! The state as the other rooms use it.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::{error, warn};

use crate::sys::{Waiter, Waker};

use super::author::Author;
use super::changes::Changes;
use super::document::Document;
use super::error::StateError;
use super::patch::Patch;
use super::pointer::Pointer;
use super::schema;
use super::shared::Shared;
use super::writer::{Job, Wish, Writer, load};

/// The most changes that wait for the writer; further callers wait to be let in.
const MAX_WAITING: usize = 256;

/// The state document with its log. Clones share it; the writer stops with the last one.
#[derive(Debug, Clone)]
pub struct State {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    database_id: String,
    // In this order: the waker, when it goes, lets the writer find that no more jobs can come.
    jobs: mpsc::Sender<Job>,
    waker: Waker,
}

impl State {
    /// Opens the database at `path`, makes it if there is none, and starts its writer.
    ///
    /// A damaged database is moved aside, to `<path>.damaged-<ms>`, and an empty one made in its place.
    pub fn open(path: &Path) -> Result<Self, StateError> {
        match Self::open_sound(path) {
            Err(StateError::Damaged { cause, .. }) => {
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
                let aside = schema::move_aside(path, now_ms)
                    .map_err(|error| StateError::io(path, &error))?;
                error!(path = %path.display(), aside = %aside.display(), %cause,
                    "the state database was damaged: moved aside, building a new one");
                Self::open_sound(path)
            }
            result => result,
        }
    }

    /// The newest document. Never touches the disk and never waits.
    pub fn document(&self) -> Arc<Document> {
        self.inner.shared.document()
    }

    /// Makes `value` stand at `pointer`, or nothing if it is absent; says which revision holds it.
    ///
    /// Objects above that are missing are made. What stands there already makes no revision.
    pub async fn put(
        &self,
        author: &Author,
        pointer: &Pointer,
        value: Option<Value>,
    ) -> Result<u64, StateError> {
        self.wish(author, Wish::Put(pointer.clone(), value)).await
    }

    /// Applies `patch` as one revision, whole or not at all; says which revision holds it.
    ///
    /// One that changes nothing makes no revision.
    pub async fn apply(&self, author: &Author, patch: Patch) -> Result<u64, StateError> {
        self.wish(author, Wish::Apply(patch)).await
    }

    /// The revisions after `after` that touch `scope`, at most `most`.
    ///
    /// Reads the log from the disk, for some milliseconds at most.
    pub fn changes_since(
        &self,
        after: u64,
        scope: &Pointer,
        most: usize,
    ) -> Result<Changes, StateError> {
        self.inner.shared.changes_since(after, scope, most)
    }

    /// The number of the newest revision, with a wake-up whenever it moves.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.inner.shared.bell()
    }

    /// The newest revision after `after` that changed the value at `scope`; nothing if none did.
    ///
    /// Answered from memory for some thousand revisions back; for an older `after` by the log, which may
    /// name a revision that wrote there what stood there.
    pub fn touched(&self, scope: &Pointer, after: u64) -> Option<u64> {
        self.inner.shared.touched(scope, after)
    }

    /// The id that the database was given when it was made; another one means that cursors are void.
    pub fn database_id(&self) -> &str {
        &self.inner.database_id
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.inner.shared.path()
    }

    /// Reads once through SQLite and sees that the writer lives; for the watchdog.
    pub async fn probe(&self) -> Result<(), StateError> {
        if self.inner.jobs.is_closed() {
            return Err(StateError::Stopped);
        }
        let shared = Arc::clone(&self.inner.shared);
        tokio::task::spawn_blocking(move || shared.read_once())
            .await
            .unwrap_or(Err(StateError::Stopped))
    }

    async fn wish(&self, author: &Author, wish: Wish) -> Result<u64, StateError> {
        let (answer, answered) = oneshot::channel();
        let author = author.clone();
        let job = Job {
            author,
            wish,
            answer,
        };
        self.inner
            .jobs
            .send(job)
            .await
            .map_err(|_| StateError::Stopped)?;
        self.inner.waker.wake();
        answered.await.unwrap_or(Err(StateError::Stopped))
    }

    fn open_sound(path: &Path) -> Result<Self, StateError> {
        let connection = schema::open(path)?;
        let database_id =
            schema::database_id(&connection).map_err(|error| StateError::sqlite(path, &error))?;
        let loaded = load(path, &connection)?;
        let reader = schema::open_for_reading(path)?;
        let shared = Arc::new(Shared::new(path, loaded.document, loaded.recent, reader));

        let (mut waiter, waker) = Waiter::new().map_err(|error| StateError::io(path, &error))?;
        let mut wal = path.as_os_str().to_owned();
        wal.push("-wal");
        if let Err(cause) = waiter.watch(Path::new(&wal)) {
            warn!(%cause, "no inotify: changes by other programs are seen within a second");
        }
        let writer = Writer::new(connection, Arc::clone(&shared), loaded.since_snapshot);
        let (jobs, waiting) = mpsc::channel(MAX_WAITING);
        thread::Builder::new()
            .name("state-writer".into())
            .spawn(move || writer.run(waiting, &waiter))
            .map_err(|error| StateError::io(path, &error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                database_id,
                jobs,
                waker,
            }),
        })
    }
}
