//! What agents are allowed for a while, without asking the disk.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::command_prefix::CommandPrefix;
use crate::sys::now_ms;
use crate::vault::{Grant, GrantBound, Vault, VaultError, arguments_sha256};

/// A call that a grant may allow.
#[derive(Debug, Clone, Copy)]
pub struct GrantedCall<'a> {
    /// The tool, by its own name.
    pub tool: &'a str,
    /// What the call is about, such as a container's name.
    pub target: Option<&'a str>,
    /// Its arguments.
    pub arguments: &'a Map<String, Value>,
}

impl GrantedCall<'_> {
    fn is_within(&self, bound: &GrantBound) -> bool {
        match bound {
            GrantBound::Any => true,
            GrantBound::Arguments(sha256) => arguments_sha256(self.arguments) == *sha256,
            // A prefix that cannot be read allows nothing.
            GrantBound::Prefix(words) => {
                let prefix = words.parse::<CommandPrefix>();
                prefix.is_ok_and(|prefix| prefix.covers(self.arguments))
            }
        }
    }
}

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

    /// Whether an agent may make a call at this moment because such calls were granted.
    pub(super) fn holds(&self, agent: &str, call: &GrantedCall<'_>) -> bool {
        let now = now_ms();
        self.known().iter().any(|grant| {
            let about = match grant.bound {
                // The same words elsewhere are another command.
                GrantBound::Prefix(_) => grant.target.as_deref() == call.target,
                _ => grant.target.is_none() || grant.target.as_deref() == call.target,
            };
            let is_its_own = grant.agent == agent && grant.tool == call.tool;
            is_its_own && about && grant.holds_at(now) && call.is_within(&grant.bound)
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
