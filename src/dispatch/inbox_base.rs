//! What the inbox stands on: who the agents are, what the box is like, and how much may wait.

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
    pub(super) limits: InboxLimits,
}

impl Inbox {
    /// An inbox over these.
    pub fn new(agents: Agents, state: State, limits: InboxLimits) -> Self {
        Self {
            agents,
            state,
            limits,
        }
    }
}
