//! The active grants of agents, from memory.

use std::fmt;
use std::sync::{Arc, RwLock};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::command_prefix::CommandPrefix;
use gatewren_base::sys::{now_ms, read_lock, write_lock};
use gatewren_store::vault::{Grant, GrantBound, Vault, VaultError, arguments_sha256};

/// A call to check against the grants.
#[derive(Debug, Clone, Copy)]
pub struct GrantedCall<'a> {
    /// The tool's own name.
    pub tool: &'a str,
    /// The target of the call, such as a container's name.
    pub target: Option<&'a str>,
    /// Its arguments.
    pub arguments: &'a Map<String, Value>,
    /// Whether only a grant of exactly these arguments counts.
    pub only_exact: bool,
}

impl GrantedCall<'_> {
    fn is_within(&self, bound: &GrantBound) -> bool {
        match bound {
            GrantBound::Any => !self.only_exact,
            GrantBound::Arguments(sha256) => arguments_sha256(self.arguments) == *sha256,
            // An invalid prefix allows nothing.
            GrantBound::Prefix(words) => {
                let prefix = words.parse::<CommandPrefix>();
                prefix.is_ok_and(|prefix| prefix.covers(self.arguments))
            }
        }
    }
}

/// All grants in memory, read again when the vault reports a change.
pub(super) struct GrantBook {
    vault: Vault,
    changes: watch::Receiver<u64>,
    known: RwLock<LoadedGrants>,
}

/// The grants at one state of the vault.
struct LoadedGrants {
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
        let changes = vault.changes().watch_inbox();
        let known = RwLock::new(LoadedGrants::read(&vault, *changes.borrow())?);
        Ok(Self {
            vault,
            changes,
            known,
        })
    }

    /// Returns whether a grant allows an agent's call at this moment.
    pub(super) fn holds(&self, agent: &str, call: &GrantedCall<'_>) -> bool {
        let now = now_ms();
        self.load_grants().iter().any(|grant| {
            let about = match grant.bound {
                // The same words in another container are another command.
                GrantBound::Prefix(_) => grant.target.as_deref() == call.target,
                _ => grant.target.is_none() || grant.target.as_deref() == call.target,
            };
            let is_its_own = grant.agent == agent && grant.tool == call.tool;
            is_its_own && about && grant.is_active_at(now) && call.is_within(&grant.bound)
        })
    }

    fn load_grants(&self) -> Arc<[Grant]> {
        let state = *self.changes.borrow();
        {
            let known = read_lock(&self.known);
            if known.state == state {
                return known.grants.clone();
            }
        }
        match LoadedGrants::read(&self.vault, state) {
            Ok(fresh) => {
                let grants = fresh.grants.clone();
                let mut known = write_lock(&self.known);
                // Another thread may have read a later state in the meantime.
                if known.state < state {
                    *known = fresh;
                }
                grants
            }
            // If the grants cannot be read, nothing is granted.
            Err(cause) => {
                tracing::error!("reloading the grants failed: {cause}");
                Arc::default()
            }
        }
    }
}

impl LoadedGrants {
    /// `state` is the counter before reading. A change during the reading causes another one.
    fn read(vault: &Vault, state: u64) -> Result<Self, VaultError> {
        let grants = vault.grants().holding()?.into();
        Ok(Self { state, grants })
    }
}
