//! A cache of the end of the audit's chain, which saves a query for each row.

use std::sync::Mutex;

use rusqlite::Connection;

use super::chain;
use gatewren_base::sys::lock;

/// The number for the next row, and the hash that it continues from.
type End = (i64, [u8; 32]);

/// The newest row of the audit that survives a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainHead {
    /// The row's number, 1 or more.
    pub seq: u64,
    /// The row's SHA-256.
    pub sha256: [u8; 32],
}

/// The end of the chain as the writing thread left it; unknown until the first query.
///
/// Fast path without a figure of its own: no row needs a query.
#[derive(Default)]
pub(in crate::vault) struct ChainTail {
    end: Mutex<Option<End>>,
    durable: Mutex<Option<ChainHead>>,
}

impl ChainTail {
    /// Returns the end of the chain. Correct only in a transaction that excludes other writers.
    pub(in crate::vault) fn end(&self, connection: &Connection) -> Result<End, rusqlite::Error> {
        let known = *lock(&self.end);
        known.map_or_else(|| chain::end(connection), Ok)
    }

    /// Records that a row was written.
    pub(in crate::vault) fn append(&self, seq: i64, sha256: [u8; 32]) {
        *lock(&self.end) = Some((seq + 1, sha256));
    }

    /// Forgets the end, because rows were rolled back, or because another process may have written some.
    pub(in crate::vault) fn forget(&self) {
        *lock(&self.end) = None;
    }

    /// Records that all added rows are on the disk.
    pub(in crate::vault) fn reached_disk(&self) {
        let Some((next, sha256)) = *lock(&self.end) else {
            return;
        };
        if let Ok(seq @ 1..) = u64::try_from(next - 1) {
            *lock(&self.durable) = Some(ChainHead { seq, sha256 });
        }
    }

    /// Returns the newest row that is known to be on the disk; `None` before this process has written one.
    pub(in crate::vault) fn durable(&self) -> Option<ChainHead> {
        *lock(&self.durable)
    }
}
