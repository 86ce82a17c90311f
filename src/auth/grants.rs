//! What agents are allowed for a while, without asking the disk.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use crate::sys::now_ms;
use crate::vault::{Grant, Vault, VaultError};

/// All grants in memory, read again whenever the vault says that they may have changed.
pub(super) struct GrantBook {
    vault: Vault,
    changes: watch::Receiver<u64>,
    known: RwLock<Known>,
}

/// The grants as they were at one state of the vault.
struct Known {
    state: u64,
    grants: Arc<[Grant]>,
}

impl fmt::Debug for GrantBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantBook")
    }
}

impl GrantBook {
    /// Reads all grants.
    pub(super) fn new(vault: Vault) -> Result<Self, VaultError> {
        let changes = vault.changes().bell();
        let known = RwLock::new(Known::read(&vault, *changes.borrow())?);
        Ok(Self {
            vault,
            changes,
            known,
        })
    }

    /// Whether an agent may, at this moment, call a tool about something because it was granted.
    pub(super) fn holds(&self, agent: &str, tool: &str, target: Option<&str>) -> bool {
        let now = now_ms();
        self.known().iter().any(|grant| {
            let about = grant.target.is_none() || grant.target.as_deref() == target;
            grant.agent == agent && grant.tool == tool && about && grant.holds_at(now)
        })
    }

    fn known(&self) -> Arc<[Grant]> {
        let state = *self.changes.borrow();
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if known.state == state {
                return known.grants.clone();
            }
        }
        match Known::read(&self.vault, state) {
            Ok(fresh) => {
                let grants = fresh.grants.clone();
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                // Another thread may have read a later state meanwhile.
                if known.state < state {
                    *known = fresh;
                }
                grants
            }
            // What cannot be read is not granted.
            Err(cause) => {
                tracing::error!("the grants could not be read again: {cause}");
                Arc::default()
            }
        }
    }
}

impl Known {
    /// `state` is from before the reading: what changes meanwhile is read again.
    fn read(vault: &Vault, state: u64) -> Result<Self, VaultError> {
        let grants = vault.grants().holding()?.into();
        Ok(Self { state, grants })
    }
}
