//! Readers of the audit that are used again: opening one reads the schema of the whole vault.

use std::path::PathBuf;
use std::sync::Mutex;

use super::reader::AuditReader;
use crate::vault::error::VaultError;
use crate::vault::store::Vault;
use gatewren_base::sys::lock;

/// The most idle readers. Those beyond it are closed after their use.
const MAX_IDLE: usize = 4;

/// Readers of the audit of one vault, for a process that reads it again and again.
pub struct AuditReaders {
    path: PathBuf,
    idle: Mutex<Vec<AuditReader>>,
}

impl AuditReaders {
    /// Readers of an open vault.
    pub fn of(vault: &Vault) -> Self {
        Self {
            path: vault.shared.trail.path.to_path_buf(),
            idle: Mutex::default(),
        }
    }

    /// Reads. A reader that failed is not used again.
    ///
    /// # Errors
    /// When the vault cannot be opened, and those of `read`.
    pub fn read<T, E: From<VaultError>>(
        &self,
        read: impl FnOnce(&AuditReader) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = lock(&self.idle).pop();
        let reader = idle.map_or_else(|| AuditReader::open(&self.path), Ok)?;
        let found = read(&reader)?;
        let mut idle = lock(&self.idle);
        if idle.len() < MAX_IDLE {
            idle.push(reader);
        }
        Ok(found)
    }
}
