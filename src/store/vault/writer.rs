//! The writing thread's handle: queues jobs, and limits how many wait.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::audit::row_job::AuditRowJob;
use super::commit::{self, WriterHooks};
use super::error::VaultError;
use super::job::{Durability, QueuedWork, WriterJob, WriterOrder, WriterWork};
use super::queue::{OrderSender, QueueClosed, queue};
use super::watch::{SELDOM, WalWatch};

/// The limit of queued jobs. At the limit a counted job waits for a slot.
const MAX_WAITING: usize = 4096;

/// How often the thread checks for writes of other processes if the kernel reports no events.
const LOOK_UNHINTED: Duration = Duration::from_millis(500);

/// What a write does, in the words of an error, and what it must survive.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteKind {
    pub doing: &'static str,
    pub durability: Durability,
}

/// A write in the queue. Dropping it does not withdraw the write.
pub(super) struct QueuedWrite<T>(oneshot::Receiver<Result<T, VaultError>>);

impl<T> QueuedWrite<T> {
    /// Waits for its commit, and returns its result.
    pub(super) async fn committed(self) -> Result<T, VaultError> {
        self.0.await.map_err(|_| VaultError::Stopped)?
    }
}

/// Dropping it writes the queued jobs and ends the thread.
pub(super) struct VaultWriter {
    path: Arc<Path>,
    orders: OrderSender,
    watch: Option<WalWatch>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl VaultWriter {
    /// Starts the thread with these hooks.
    pub(super) fn start(
        connection: Connection,
        path: &Path,
        hooks: WriterHooks,
    ) -> Result<Self, VaultError> {
        let (orders, waiting) = queue();
        let version = commit::data_version(&connection);
        let watch = WalWatch::start(path, orders.clone())
            .inspect_err(|cause| tracing::warn!(%cause, "watching the vault failed: it is polled for writes"))
            .ok();
        let look_every = watch.as_ref().map_or(LOOK_UNHINTED, |_| SELDOM);
        let thread = std::thread::Builder::new()
            .name("vault".to_owned())
            .spawn(move || commit::run(&connection, version, &waiting, look_every, &hooks))
            .map_err(|cause| VaultError::Refused {
                doing: "start its writing thread",
                cause: cause.to_string(),
            })?;
        Ok(Self {
            path: path.into(),
            orders,
            watch,
            places: Arc::new(Semaphore::new(MAX_WAITING)),
            thread: Some(thread),
        })
    }

    /// Runs `work` in the next commit, and returns its result after that commit.
    ///
    /// `then` runs in the writing thread right after the commit, even if the caller's future was dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T, VaultError> {
        let slot = self.slot().await?;
        let kind = WriteKind { doing, durability };
        let queued = self.queue(slot, kind, work, then)?;
        queued.committed().await
    }

    /// Queues the same in a reserved slot, without a wait. Jobs that are queued afterwards run after it.
    pub(super) fn queue<T: Send + 'static>(
        &self,
        slot: OwnedSemaphorePermit,
        kind: WriteKind,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<QueuedWrite<T>, VaultError> {
        let WriteKind { doing, durability } = kind;
        let (answer, answered) = oneshot::channel();
        let work = self.task(doing, work, move |outcome| {
            if let Ok(value) = &outcome {
                then(value);
            }
            // Fails if the caller's future was dropped.
            let _ = answer.send(outcome);
        });
        self.send(WriterJob {
            durability,
            work,
            awaited: true,
            place: Some(slot),
        })?;
        Ok(QueuedWrite(answered))
    }

    /// Reserves a slot for a later row if one is free, which is almost always the case.
    pub(super) fn free_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Queues a row in a reserved slot, for a later commit. A failure to write it is logged.
    pub(super) fn enqueue_row(
        &self,
        row: AuditRowJob,
        slot: OwnedSemaphorePermit,
    ) -> Result<(), VaultError> {
        self.send(WriterJob::unawaited(Some(slot), QueuedWork::Row(row)))
    }

    /// Queues a row without a slot: only for callers that limit the number in another way.
    pub(super) fn enqueue_row_uncounted(&self, row: AuditRowJob) -> Result<(), VaultError> {
        self.send(WriterJob::unawaited(None, QueuedWork::Row(row)))
    }

    /// Queues work without a slot: only for callers that limit the number in another way.
    pub(super) fn enqueue_uncounted(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<(), VaultError> {
        self.send(WriterJob::unawaited(None, self.task(doing, work, logged)))
    }

    /// Queues work if a slot is free, and drops it otherwise: only for data that may be lost.
    pub(super) fn enqueue_or_drop(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            let task = self.task(doing, work, logged);
            // Fails only when gatewren is stopping.
            let _ = self.send(WriterJob::unawaited(Some(place), task));
        }
    }

    /// Waits for a slot.
    pub(super) async fn slot(&self) -> Result<OwnedSemaphorePermit, VaultError> {
        let places = Arc::clone(&self.places);
        places
            .acquire_owned()
            .await
            .map_err(|_| VaultError::Stopped)
    }

    fn task<T, W, F>(&self, doing: &'static str, work: W, finish: F) -> QueuedWork
    where
        T: Send + 'static,
        W: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
        F: FnOnce(Result<T, VaultError>) + Send + 'static,
    {
        QueuedWork::Other(Box::new(Task {
            path: Arc::clone(&self.path),
            doing,
            work: Some(work),
            outcome: None,
            finish,
        }))
    }

    fn send(&self, job: WriterJob) -> Result<(), VaultError> {
        let put = self.orders.put(WriterOrder::Do(job));
        put.map_err(|QueueClosed| VaultError::Stopped)
    }
}

impl Drop for VaultWriter {
    fn drop(&mut self) {
        self.watch = None;
        self.orders.close();
        if let Some(thread) = self.thread.take() {
            // A panic in the thread was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn logged(outcome: Result<(), VaultError>) {
    if let Err(cause) = outcome {
        tracing::error!("{cause}");
    }
}

/// Work together with a callback for its result.
struct Task<T, W, F> {
    path: Arc<Path>,
    doing: &'static str,
    work: Option<W>,
    outcome: Option<Result<T, rusqlite::Error>>,
    finish: F,
}

impl<T, W, F> WriterWork for Task<T, W, F>
where
    T: Send,
    W: FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send,
    F: FnOnce(Result<T, VaultError>) + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        self.outcome = self.work.take().map(|work| work(connection));
        matches!(self.outcome, Some(Ok(_)))
    }

    fn finish(self: Box<Self>, committed: Result<(), &str>) {
        let outcome = match (self.outcome, committed) {
            (Some(Err(cause)), _) => Err(VaultError::from_sqlite(&self.path, self.doing, &cause)),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (_, failed) => Err(VaultError::Refused {
                doing: self.doing,
                cause: failed.err().unwrap_or("it was not started").to_owned(),
            }),
        };
        (self.finish)(outcome);
    }
}
