//! The jobs of the writing thread.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::OwnedSemaphorePermit;

use super::audit::row::RowInserter;
use super::audit::row_job::AuditRowJob;

/// What a write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// A crash of this process.
    Process,
    /// A power cut. The commit waits for the disk.
    Power,
}

/// A unit of work for the thread.
pub(super) trait WriterWork: Send {
    /// Runs inside a transaction. If it returns false, the caller rolls back its writes.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Called once, after the commit. If no transaction could begin, it is called without [`WriterWork::run`].
    fn finish(self: Box<Self>, committed: Result<(), &str>);
}

/// Work in the queue, with its options.
pub(super) struct WriterJob {
    /// What its commit must survive.
    pub durability: Durability,
    /// The work.
    pub work: QueuedWork,
    /// Whether a task waits for its commit.
    pub awaited: bool,
    /// Its slot in the queue, released when the job is done.
    pub place: Option<OwnedSemaphorePermit>,
}

impl WriterJob {
    /// A job that survives a crash of this process, and that no task waits for.
    pub(super) fn unawaited(place: Option<OwnedSemaphorePermit>, work: QueuedWork) -> Self {
        Self {
            durability: Durability::Process,
            work,
            awaited: false,
            place,
        }
    }
}

/// The kinds of work.
#[expect(
    clippy::large_enum_variant,
    reason = "almost all are rows, and this avoids an allocation for each"
)]
pub(super) enum QueuedWork {
    /// A row of the audit, the most frequent kind; stored inline in the queue. It is a single statement, so a
    /// failure needs no rollback.
    Row(AuditRowJob),
    /// Any other work.
    Other(Box<dyn WriterWork>),
}

impl QueuedWork {
    pub(super) fn run(&mut self, connection: &Connection) -> bool {
        match self {
            Self::Row(row) => row.run(&mut RowInserter::new(connection)),
            Self::Other(work) => work.run(connection),
        }
    }

    pub(super) fn finish(self, committed: Result<(), &str>) {
        match self {
            Self::Row(row) => row.finish(committed),
            Self::Other(work) => work.finish(committed),
        }
    }
}

/// An order to the thread.
#[expect(clippy::large_enum_variant, reason = "almost all are jobs")]
pub(super) enum WriterOrder {
    /// Run a job.
    Do(WriterJob),
    /// Check whether another process has written. The value is dropped when the order is executed.
    Look(Arc<()>),
}

impl WriterOrder {
    /// Returns whether a task waits for the result.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Self::Do(job) => job.awaited,
            Self::Look(_) => true,
        }
    }

    /// Returns the job. `WriterOrder::Look` has none: each commit checks for other writers anyway.
    pub(super) fn job(self) -> Option<WriterJob> {
        match self {
            Self::Do(job) => Some(job),
            Self::Look(token) => {
                drop(token);
                None
            }
        }
    }
}
