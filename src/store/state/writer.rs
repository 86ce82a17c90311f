//! The only writer thread: makes revisions, follows those of other programs, compacts the log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

use gatewren_base::sys::{FileWaiter, lock, now_ms};

use super::author::Author;
use super::author_seal::NewRevision;
use super::diff;
use super::document::{Document, Draft, SpareDocument};
use super::error::StateError;
use super::follow::{ReadProgress, WritesSinceSnapshot, load, read_on};
use super::log::{self, MAX_PATCH_BYTES, StateLogRetention};
use super::log_limiter::DatabaseFailures;
use super::patch::Patch;
use super::pointer::Pointer;
use super::shared::SharedState;

/// The poll interval without a hint: it finds a commit even if its hint was lost.
const POLL: Duration = Duration::from_secs(30);

/// The poll interval where the kernel gives no hints: the longest delay until a commit is seen.
const POLL_UNHINTED: Duration = Duration::from_secs(1);

/// The first wait after a hint that showed no commit yet. The write-ahead log is written before a commit becomes
/// visible, earlier by as long as the disk takes. Each further wait is a quarter longer, up to [`POLL`], so the
/// delay is at most a quarter of the disk's time. The same wait follows a commit that was found: the hint of the
/// next commit may have come together with its hint, and no further hint comes when that commit becomes visible.
const FIRST_WAIT: Duration = Duration::from_micros(20);

/// Bytes of patches since the last snapshot above which a snapshot is written early.
const SNAPSHOT_BYTES: usize = 4 * 1024 * 1024;

/// A change that a caller requests.
#[derive(Debug)]
pub enum WriteRequest {
    /// Set the value at a place, or remove it.
    Put(Pointer, Option<Value>),
    /// Apply a patch.
    Apply(Patch),
}

/// A requested change, its author, and the channel for the answer.
#[derive(Debug)]
pub struct WriteJob {
    /// The author.
    pub author: Author,
    /// The change.
    pub request: WriteRequest,
    /// Receives the revision that contains the result.
    pub answer: oneshot::Sender<Result<u64, StateError>>,
}

/// The writer's side of the state.
#[derive(Debug)]
pub struct StateWriter {
    connection: Connection,
    shared: Arc<SharedState>,
    retention: Arc<Mutex<StateLogRetention>>,
    seen: i64,
    /// The wait before the next check.
    poll_interval: Duration,
    /// The longest wait: [`POLL`] or [`POLL_UNHINTED`].
    longest: Duration,
    since_snapshot: WritesSinceSnapshot,
    spare: Option<SpareDocument>,
    failures: DatabaseFailures,
}

impl StateWriter {
    /// Returns a writer for an open database whose document is in `shared`.
    pub fn new(
        connection: Connection,
        shared: Arc<SharedState>,
        since_snapshot: WritesSinceSnapshot,
        retention: Arc<Mutex<StateLogRetention>>,
    ) -> Self {
        // The data version is not known yet: the first check reads the revisions since the document was loaded.
        Self {
            connection,
            shared,
            retention,
            seen: -1,
            poll_interval: POLL_UNHINTED,
            longest: POLL_UNHINTED,
            since_snapshot,
            spare: None,
            failures: DatabaseFailures::default(),
        }
    }

    /// Runs until all senders of jobs are dropped.
    pub fn run(mut self, mut jobs: mpsc::Receiver<WriteJob>, waiter: &FileWaiter) {
        if waiter.watches() {
            self.longest = POLL;
        }
        loop {
            self.follow_others();
            match waiter.wait(self.poll_interval) {
                Ok(woken) if woken.written => self.poll_interval = Duration::ZERO,
                Ok(_) => {}
                Err(cause) => {
                    error!(%cause, "waiting for the state database failed");
                    std::thread::sleep(POLL_UNHINTED);
                }
            }
            loop {
                match jobs.try_recv() {
                    Ok(job) => {
                        let result = self.fulfil_write(&job.author, job.request);
                        self.failures.note("write", &result);
                        // The caller may have stopped waiting; the revision stays written.
                        let _ = job.answer.send(result);
                    }
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return self.close(),
                }
            }
        }
    }

    /// Folds the write-ahead log into the database, so that the file is complete by itself.
    fn close(self) {
        let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
        if let Err(cause) = self.connection.query_row(fold, [], |_| Ok(())) {
            // Another program is reading; the next start finds everything anyway.
            tracing::debug!(%cause, "the write-ahead log of the state database could not be folded into it");
        }
    }

    /// Follows the log if another program has committed; otherwise extends the next wait.
    fn follow_others(&mut self) {
        let followed = match log::data_version(&self.connection) {
            Ok(version) if version == self.seen => {
                self.poll_interval = (self.poll_interval * 5 / 4).clamp(FIRST_WAIT, self.longest);
                return;
            }
            Ok(version) => self.follow().map(|()| self.seen = version),
            Err(cause) => Err(self.write_error(&cause)),
        };
        self.poll_interval = if followed.is_ok() {
            FIRST_WAIT
        } else {
            POLL_UNHINTED
        };
        self.failures.note("read", &followed);
        if followed.is_ok() {
            self.compact();
        }
    }

    fn fulfil_write(&mut self, author: &Author, request: WriteRequest) -> Result<u64, StateError> {
        // Cheap, and most puts change nothing: those never take the lock.
        self.follow_others();
        if let WriteRequest::Put(at, value) = &request {
            let document = self.shared.document();
            if diff::put(&document.root, at, value.clone()).is_empty() {
                return Ok(document.revision);
            }
        }
        self.execute("BEGIN IMMEDIATE")?;
        let written = self.write(author, request);
        if let Ok(Some(draft)) = written {
            self.execute("COMMIT").inspect_err(|_| self.roll_back())?;
            self.spare = Some(self.shared.publish(draft));
            self.compact();
        } else {
            self.roll_back();
            written?;
        }
        Ok(self.shared.document().revision)
    }

    /// Writes the next revision, inside a transaction; returns `None` if nothing changes.
    fn write(
        &mut self,
        author: &Author,
        request: WriteRequest,
    ) -> Result<Option<Draft>, StateError> {
        // While the lock is held, no other program can take the next number.
        self.follow()?;
        let document = self.shared.document();
        let patch = match request {
            WriteRequest::Put(at, value) => Patch::new(diff::put(&document.root, &at, value)),
            WriteRequest::Apply(patch) => patch,
        };
        if patch.is_empty() {
            return Ok(None);
        }
        let (id, at_ms) = (document.revision + 1, now_ms());
        let text =
            serde_json::to_string(&patch).map_err(|cause| self.failed(&cause.to_string()))?;
        let mut draft = self.draft(&document);
        draft.advance(id, at_ms, patch)?;
        if !draft.differs() {
            return Ok(None);
        }
        if text.len() > MAX_PATCH_BYTES {
            return Err(StateError::TooLarge {
                bytes: text.len(),
                most: MAX_PATCH_BYTES,
            });
        }
        log::insert(&self.connection, id, at_ms, author, &text)
            .and_then(|()| self.seal(id, at_ms, author, &text))
            .map_err(|cause| self.write_error(&cause))?;
        self.since_snapshot.count(text.len());
        Ok(Some(draft))
    }

    /// Seals the revision that was just written, if there is a key.
    fn seal(&self, id: u64, at_ms: u64, author: &Author, patch: &str) -> rusqlite::Result<()> {
        let Some(key) = self.shared.author_key() else {
            return Ok(());
        };
        let revision = NewRevision {
            id,
            at_ms,
            actor: &author.actor.to_string(),
            cause: author.cause.as_deref(),
            patch,
        };
        key.seal(&self.connection, &revision)
    }

    /// Returns a draft that starts from `document`.
    fn draft(&mut self, document: &Arc<Document>) -> Draft {
        let spare = self.spare.take();
        let copy = spare.and_then(|spare| spare.into_copy(document));
        Draft::of(copy.unwrap_or_else(|| Document::clone(document)))
    }

    /// Reads the revisions that other programs wrote, and publishes them.
    fn follow(&mut self) -> Result<(), StateError> {
        loop {
            let document = self.shared.document();
            let newest = log::newest(&self.connection).map_err(|cause| self.write_error(&cause))?;
            if newest == document.revision {
                return Ok(());
            }
            let mut draft = self.draft(&document);
            let reading = read_on(&self.connection, &mut draft, &mut self.since_snapshot);
            match reading.map_err(|cause| self.write_error(&cause))? {
                ReadProgress::Gap => return self.start_again(),
                ReadProgress::Read if draft.document.revision == document.revision => {
                    return self.start_again();
                }
                ReadProgress::Read => self.spare = Some(self.shared.publish(draft)),
            }
        }
    }

    /// Loads the whole database again, after another program removed revisions.
    fn start_again(&mut self) -> Result<(), StateError> {
        warn!(path = %self.shared.path().display(),
            "revisions are missing in the state log: the whole log is read again");
        let loaded = load(self.shared.path(), &self.connection)?;
        self.since_snapshot = loaded.since_snapshot;
        self.shared.restart(loaded.document, loaded.recent);
        Ok(())
    }

    /// Writes a snapshot if one is due.
    fn compact(&mut self) {
        let since = self.since_snapshot;
        let retention = *lock(&self.retention);
        if since.revisions < retention.snapshot_every && since.bytes < SNAPSHOT_BYTES {
            return;
        }
        self.since_snapshot = WritesSinceSnapshot::default();
        let document = self.shared.document();
        let (revision, text) = (document.revision, document.root.to_string());
        let connection = &mut self.connection;
        if let Err(cause) = log::compact(connection, revision, now_ms(), &text, retention) {
            warn!(%cause, "compacting the state log failed; it is retried after the same number of revisions");
        }
    }

    fn execute(&self, sql: &str) -> Result<(), StateError> {
        self.connection
            .execute_batch(sql)
            .map_err(|cause| self.write_error(&cause))
    }

    fn roll_back(&self) {
        // SQLite rolls back by itself after some errors; then this statement fails harmlessly.
        let _ = self.connection.execute_batch("ROLLBACK");
    }

    fn write_error(&self, cause: &rusqlite::Error) -> StateError {
        StateError::sqlite(self.shared.path(), cause)
    }

    fn failed(&self, cause: &str) -> StateError {
        let path = self.shared.path().to_owned();
        StateError::Failed {
            path,
            cause: cause.to_owned(),
        }
    }
}
