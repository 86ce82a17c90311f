//! The inbox: the current agents and state that proposals are checked against, and its limits.

use std::sync::Mutex;
use std::time::Duration;

use gatewren_base::sys::lock;
use gatewren_gate::auth::Agents;
use gatewren_store::state::State;
use gatewren_store::vault::OpenChangeLimits;

/// Limits for proposals.
#[derive(Debug, Clone, Copy)]
pub struct InboxLimits {
    /// The time after which a proposed change that has not begun expires.
    pub expires: Duration,
    /// How many changes may be open at once.
    pub room: OpenChangeLimits,
}

/// Returns the address of the owner's page, such as `https://box:8443`.
pub type OwnerPageAddress = dyn Fn() -> String + Send + Sync;

/// What is needed to store proposals and to run approved changes.
pub struct Inbox {
    /// The current agents.
    pub(in crate::dispatch) agents: Agents,
    /// The state that proposals depend on.
    pub(in crate::dispatch) state: State,
    limits: Mutex<InboxLimits>,
    owner_page: Option<Box<OwnerPageAddress>>,
}

impl Inbox {
    /// Creates an inbox.
    pub fn new(agents: Agents, state: State, limits: InboxLimits) -> Self {
        Self {
            agents,
            state,
            limits: Mutex::new(limits),
            owner_page: None,
        }
    }

    /// Adds the address of the owner's page, which cards open.
    #[must_use]
    pub fn with_owner_page(self, owner_page: Option<Box<OwnerPageAddress>>) -> Self {
        Self { owner_page, ..self }
    }

    pub(in crate::dispatch) fn owner_page(&self) -> Option<String> {
        self.owner_page.as_ref().map(|address| address())
    }

    pub(in crate::dispatch) fn limits(&self) -> InboxLimits {
        *lock(&self.limits)
    }

    pub(in crate::dispatch) fn set_limits(&self, limits: InboxLimits) {
        *lock(&self.limits) = limits;
    }
}
