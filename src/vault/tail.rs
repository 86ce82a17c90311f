//! Where the audit's chain ends, remembered from row to row, so that no row has to ask for it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::chain;

/// The number for the next row, and the hash that it follows on.
type End = (i64, [u8; 32]);

/// The end of the chain as the writing thread left it; unknown until it was asked for.
#[derive(Default)]
pub(super) struct Tail(Mutex<Option<End>>);

impl Tail {
    /// Where the next row belongs. Only right inside a transaction that nobody else can write beside.
    pub(super) fn end(&self, connection: &Connection) -> Result<End, rusqlite::Error> {
        let known = *self.lock();
        known.map_or_else(|| chain::end(connection), Ok)
    }

    /// A row was written there.
    pub(super) fn grew(&self, seq: i64, sha256: [u8; 32]) {
        *self.lock() = Some((seq + 1, sha256));
    }

    /// Rows were undone, or somebody else may have written some.
    pub(super) fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<End>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
