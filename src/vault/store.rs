//! The vault itself: one open file, one writing thread, and the doors to its tables.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tokio::sync::watch;

use super::agents::Agents;
use super::audit::Audit;
use super::commit::Durability;
use super::error::VaultError;
use super::keys;
use super::migration::STEPS;
use super::open;
use super::sessions::{Revoked, Sessions};
use super::shared::Shared;
use super::writer::Writer;

/// An open vault; a clone is the same one. Dropping the last writes what waits and closes the file.
#[derive(Clone)]
pub struct Vault {
    shared: Arc<Shared>,
    revoked: Arc<Revoked>,
}

impl Vault {
    /// Opens the vault, or makes it (mode 0600) if there is none; its directory must exist.
    ///
    /// This checks the whole file and blocks while it does.
    pub fn open(path: &Path) -> Result<Self, VaultError> {
        let writing = open::writing(path, STEPS)?;
        let reading = open::reading(path)?;
        let revoked = Arc::new(Revoked::default());
        revoked
            .load(&writing)
            .map_err(|cause| VaultError::from_sqlite(path, "read its sessions", &cause))?;
        let changes = watch::Sender::new(0);
        let (count, theirs) = (changes.clone(), Arc::clone(&revoked));
        let writer = Writer::start(writing, path, move |connection| {
            if let Err(cause) = theirs.load(connection) {
                tracing::error!(%cause, "the vault could not read its sessions again");
            }
            count.send_modify(|changes| *changes += 1);
        })?;
        let shared = Arc::new(Shared {
            path: path.into(),
            writer,
            reader: Mutex::new(reading),
            agent_changes: changes,
        });
        Ok(Self { shared, revoked })
    }

    /// Who may come in.
    pub fn agents(&self) -> Agents<'_> {
        Agents::new(&self.shared)
    }

    /// Sessions that were ended before their time.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions::new(&self.shared.writer, &self.revoked)
    }

    /// What was done, by whom.
    pub fn audit(&self) -> Audit<'_> {
        Audit::new(&self.shared.writer, &self.shared.path)
    }

    /// A secret of the server's own, such as the key that signs session ids; made at its first use.
    pub async fn key(&self, name: &'static str) -> Result<[u8; 32], VaultError> {
        keys::find_or_make(&self.shared.writer, name).await
    }

    /// Goes once through the queue and the file: an answer means that the vault works.
    pub async fn probe(&self) -> Result<(), VaultError> {
        let work = |connection: &Connection| {
            connection
                .prepare_cached("SELECT count(*) FROM meta")?
                .query_row([], |_| Ok(()))
        };
        let doing = "answer a probe";
        let writer = &self.shared.writer;
        writer
            .write(doing, Durability::Process, work, |()| ())
            .await
    }
}
