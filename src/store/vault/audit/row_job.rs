//! A row of the audit as a job of the writing thread.

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::chain_tail::Tail;
use super::row::{Record, append};
use crate::vault::error::VaultError;

/// The data that all rows share.
pub(in crate::vault) struct Trail {
    /// The vault's file.
    pub path: Box<Path>,
    /// The position of the next row.
    pub tail: Arc<Tail>,
}

/// A row to write. A failure is logged.
pub(in crate::vault) struct Row {
    trail: Arc<Trail>,
    record: Record,
    failed: Option<Box<rusqlite::Error>>,
}

impl Row {
    pub(in crate::vault) fn new(trail: &Arc<Trail>, record: Record) -> Self {
        Self {
            trail: Arc::clone(trail),
            record,
            failed: None,
        }
    }

    /// Appends the row. Returns false if that failed.
    pub(in crate::vault) fn run(&mut self, connection: &Connection) -> bool {
        let added = append(connection, &self.trail.tail, &self.record);
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
            (None, Ok(())) => return,
        };
        tracing::error!("{error}");
    }
}
