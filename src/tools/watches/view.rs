//! A watch as agents and the owner see it.

use serde::Serialize;

use super::condition::WatchSpec;
use super::phase::WatchState;
use gatewren_base::sys::rfc3339;
use gatewren_store::vault::{StoredWatch, Vault, VaultError};

/// A watch. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WatchView {
    /// Its id.
    pub id: String,
    /// The name that its agent gave it.
    pub name: String,
    /// The condition in words.
    pub watches: String,
    /// `clear`, `pending` (it holds, but not for `for_s` yet), `fired` (the owner was notified), `stopped` (the agent
    /// lacks the permission), or `paused`.
    pub phase: &'static str,
    /// What the last check found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub seen: String,
    /// Whether the last check failed, so that the phase may be out of date.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// The begin of the phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The last check, accurate to a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<String>,
    /// When it last fired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired_at: Option<String>,
    /// When it last recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<String>,
    /// The time in seconds that the condition must hold.
    pub for_s: u32,
    /// The seconds between two checks.
    pub every_s: u32,
}

/// An agent's own watches.
#[derive(Debug, Serialize)]
pub struct OwnWatches {
    /// The watches, oldest first.
    watches: Vec<WatchView>,
}

impl OwnWatches {
    /// Reads the watches of an agent.
    ///
    /// # Errors
    /// When the vault cannot be read.
    pub fn of(vault: &Vault, agent: &str) -> Result<Self, VaultError> {
        let own = vault.watches().list_of(agent)?;
        Ok(Self {
            watches: own.iter().filter_map(WatchView::of).collect(),
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }
}

impl WatchView {
    /// Reads a stored watch; `None` if a newer version has written it.
    pub fn of(watch: &StoredWatch) -> Option<Self> {
        let spec: WatchSpec = serde_json::from_str(&watch.spec).ok()?;
        let state: WatchState = serde_json::from_str(&watch.state).ok()?;
        let time = |ms: u64| (ms > 0).then(|| rfc3339(ms));
        Some(Self {
            id: watch.id.clone(),
            name: watch.name.clone(),
            watches: spec.words(),
            phase: match (spec.paused, state.stopped) {
                (true, _) => "paused",
                (false, true) => "stopped",
                (false, false) => state.phase.as_str(),
            },
            unchecked: state.unable_ms.is_some(),
            since: time(state.since_ms),
            checked_at: time(state.checked_ms),
            fired_at: state.fired_ms.and_then(time),
            recovered_at: state.recovered_ms.and_then(time),
            seen: state.seen,
            for_s: spec.for_s,
            every_s: spec.every_s,
        })
    }
}
