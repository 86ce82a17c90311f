//! What the thread that writes is given to do.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::OwnedSemaphorePermit;

use super::row_job::Row;

/// What a write must survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Our own crash.
    Process,
    /// A power cut: its commit waits for the disk.
    Power,
}

/// A piece of work for the thread.
pub(super) trait Work: Send {
    /// Does it inside a transaction; false undoes what it did there.
    fn run(&mut self, connection: &Connection) -> bool;
    /// Called once, after the commit; without [`Work::run`] before it if none could begin.
    fn finish(self: Box<Self>, committed: Result<(), &str>);
}

/// Work on its way to the thread.
pub(super) struct Job {
    /// What its commit must survive.
    pub durability: Durability,
    /// What to do.
    pub work: Todo,
    /// Somebody waits for its commit.
    pub awaited: bool,
    /// Its place in the queue, given back when it is done.
    pub place: Option<OwnedSemaphorePermit>,
}

/// What a job is.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are rows, and a box for each is what this spares"
)]
pub(super) enum Todo {
    /// A row of the audit, as most are: in its place in the queue. It is one statement, so nothing has to be undone
    /// where it fails.
    Row(Row),
    /// Anything else.
    Other(Box<dyn Work>),
}

impl Todo {
    pub(super) fn run(&mut self, connection: &Connection) -> bool {
        match self {
            Self::Row(row) => row.run(connection),
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

/// What the thread is told.
#[expect(clippy::large_enum_variant, reason = "nearly all are jobs")]
pub(super) enum Order {
    /// To do a job.
    Do(Job),
    /// To look whether another process has written; what it holds is dropped as it is obeyed.
    Look(Arc<()>),
}

impl Order {
    /// Somebody waits for what comes of it.
    pub(super) fn is_awaited(&self) -> bool {
        match self {
            Self::Do(job) => job.awaited,
            Self::Look(_) => true,
        }
    }

    /// The job that it is; one to look is obeyed with every commit.
    pub(super) fn job(self) -> Option<Job> {
        match self {
            Self::Do(job) => Some(job),
            Self::Look(told) => {
                drop(told);
                None
            }
        }
    }
}
