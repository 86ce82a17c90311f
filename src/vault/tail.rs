//! Where the audit's chain ends, remembered from row to row, so that no row has to ask for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::chain;

/// The number for the next row, and the hash that it follows on.
type End = (i64, [u8; 32]);

/// The newest row of the audit that a power cut cannot take back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// The row's number, 1 or more.
    pub seq: u64,
    /// The row's SHA-256.
    pub sha256: [u8; 32],
}

/// The end of the chain as the writing thread left it; unknown until it was asked for.
#[derive(Default)]
pub(super) struct Tail {
    end: Mutex<Option<End>>,
    durable: Mutex<Option<ChainHead>>,
}

impl Tail {
    /// Where the next row belongs. Only right inside a transaction that nobody else can write beside.
    pub(super) fn end(&self, connection: &Connection) -> Result<End, rusqlite::Error> {
        let known = *lock(&self.end);
        known.map_or_else(|| chain::end(connection), Ok)
    }

    /// A row was written there.
    pub(super) fn grew(&self, seq: i64, sha256: [u8; 32]) {
        *lock(&self.end) = Some((seq + 1, sha256));
    }

    /// Rows were undone, or somebody else may have written some.
    pub(super) fn forget(&self) {
        *lock(&self.end) = None;
    }

    /// All rows that were added are on the disk.
    pub(super) fn reached_disk(&self) {
        let Some((next, sha256)) = *lock(&self.end) else {
            return;
        };
        if let Ok(seq @ 1..) = u64::try_from(next - 1) {
            *lock(&self.durable) = Some(ChainHead { seq, sha256 });
        }
    }

    /// The newest row that is known to be on the disk; none before this process has written one.
    pub(super) fn durable(&self) -> Option<ChainHead> {
        *lock(&self.durable)
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
