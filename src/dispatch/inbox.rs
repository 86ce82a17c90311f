//! What the inbox stands on: who the agents are now, the box that proposals rest on, and how much is kept.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::auth::Agents;
use crate::state::State;
use crate::vault::ChangeRoom;

/// How long and how much agents may propose.
#[derive(Debug, Clone, Copy)]
pub struct InboxLimits {
    /// A change that has not begun so long after it was proposed is begun no more.
    pub expires: Duration,
    /// How many may be open at once.
    pub room: ChangeRoom,
}

/// What it takes to keep proposals and to run what was approved.
pub struct Inbox {
    /// Who the agents are now.
    pub(super) agents: Agents,
    /// The box, which proposals rest on.
    pub(super) state: State,
    limits: Mutex<InboxLimits>,
}

impl Inbox {
    /// An inbox over these.
    pub fn new(agents: Agents, state: State, limits: InboxLimits) -> Self {
        Self {
            agents,
            state,
            limits: Mutex::new(limits),
        }
    }

    pub(super) fn limits(&self) -> InboxLimits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_limits(&self, limits: InboxLimits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }
}
