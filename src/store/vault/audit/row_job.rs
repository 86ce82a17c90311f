//! A row of the audit as a job of the writing thread.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::chain_tail::ChainTail;
use super::row::{RowInserter, UnnumberedRow};
use crate::vault::error::VaultError;

/// The data that all rows share.
pub(in crate::vault) struct AuditRowContext {
    /// The vault's file.
    pub path: Box<Path>,
    /// The position of the next row.
    pub tail: Arc<ChainTail>,
    /// Whether the newest row could not be written.
    pub failing: AtomicBool,
}

impl AuditRowContext {
    /// Records that a row was written.
    pub(in crate::vault) fn succeeded(&self) {
        self.failing.store(false, Ordering::Relaxed);
    }

    /// Returns whether the newest row could not be written.
    pub(in crate::vault) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }
}

/// A row to write. A failure is logged.
pub(in crate::vault) struct AuditRowJob {
    trail: Arc<AuditRowContext>,
    record: UnnumberedRow,
    failed: Option<Box<rusqlite::Error>>,
}

impl AuditRowJob {
    pub(in crate::vault) fn new(trail: &Arc<AuditRowContext>, record: UnnumberedRow) -> Self {
        Self {
            trail: Arc::clone(trail),
            record,
            failed: None,
        }
    }

    /// Appends the row. Returns false if that failed.
    pub(in crate::vault) fn run(&mut self, rows: &mut RowInserter<'_>) -> bool {
        let added = rows.append(&self.trail.tail, &self.record);
        self.failed = added.err().map(Box::new);
        self.failed.is_none()
    }

    /// Called once, after the commit.
    pub(in crate::vault) fn finish(self, committed: Result<(), &str>) {
        let doing = "write to the audit";
        let error = match (self.failed, committed) {
            (Some(cause), _) => VaultError::from_sqlite(&self.trail.path, doing, &cause),
            (None, Err(cause)) => VaultError::Refused {
                doing,
                cause: cause.to_owned(),
            },
            (None, Ok(())) => return self.trail.succeeded(),
        };
        self.trail.failing.store(true, Ordering::Relaxed);
        tracing::error!("{error}");
    }
}
