//! What all tables share: the writing thread, a connection for reads, and counters of changes.

use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::watch;

use super::agents::keys::{self, SecretKey};
use super::audit::row_job::AuditRowContext;
use super::error::VaultError;
use super::ids::IdGenerator;
use super::job::Durability;
use super::open;
use super::writer::VaultWriter;
use gatewren_base::sys::{lock, random_bytes};

/// The open vault.
pub(super) struct SharedVault {
    pub writer: VaultWriter,
    /// Separate from the writing connection, so that a read never waits for a commit.
    pub reader: Mutex<Connection>,
    /// An idle connection for reads that take a while, during which others must be able to read.
    pub long_reader: Mutex<Option<Connection>>,
    /// Counts changes to the agents, including those by other processes.
    pub agent_changes: watch::Sender<u64>,
    /// Counts changes to the inbox and its grants, including those by other processes.
    pub inbox_changes: watch::Sender<u64>,
    /// Counts added and removed watches, including those by other processes.
    pub watch_changes: watch::Sender<u64>,
    /// The data that all rows of the audit share.
    pub trail: Arc<AuditRowContext>,
    /// The audit's last row before this run of the server. A call up to it without an outcome never gets one.
    pub audit_run_after: AtomicI64,
    /// The generator of call ids for the audit.
    pub ids: IdGenerator,
}

impl SharedVault {
    /// Reads on the connection for reads.
    pub(super) fn read<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, VaultError> {
        let reader = lock(&self.reader);
        work(&reader).map_err(|cause| VaultError::from_sqlite(&self.trail.path, doing, &cause))
    }

    /// Reads what takes a while, on a connection of its own. An idle one is used again: opening one reads the whole
    /// schema.
    pub(super) fn read_long<T>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, VaultError> {
        let path = &self.trail.path;
        let idle = lock(&self.long_reader).take();
        let connection = idle.map_or_else(|| open::reading(path), Ok)?;
        let read =
            work(&connection).map_err(|cause| VaultError::from_sqlite(path, doing, &cause))?;
        *lock(&self.long_reader) = Some(connection);
        Ok(read)
    }

    /// Writes data that must survive a crash of the process. A power cut may undo the write, which is acceptable
    /// for these callers.
    pub(super) async fn write(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<(), rusqlite::Error> + Send + 'static,
    ) -> Result<(), VaultError> {
        let written = self.writer.write(doing, Durability::Process, work, |()| ());
        written.await
    }

    /// Writes what the inbox shows, which is durable once this returns, and notifies those who watch the inbox.
    pub(super) async fn write_inbox<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    ) -> Result<T, VaultError> {
        let inbox_changes = self.inbox_changes.clone();
        let then = move |_: &T| inbox_changes.send_modify(|changes| *changes += 1);
        let written = self.writer.write(doing, Durability::Power, work, then);
        written.await
    }

    /// Returns the key with this name. Makes it from random bytes if there is none yet.
    pub(super) async fn key(&self, name: &'static str) -> Result<SecretKey, VaultError> {
        let fresh = SecretKey::new(random_bytes()?);
        let work = move |connection: &Connection| keys::find_or_store(connection, name, fresh);
        let doing = "find or create a key";
        let kept = self.writer.write(doing, Durability::Power, work, |_| ());
        kept.await
    }
}
