//! Detects when a listening agent's policy or reach changes so that its tools change.

use std::sync::Arc;

use super::engine::{Engine, PrincipalUpdates};
use super::wake_isolated::WakeIsolated;
use gatewren_gate::auth::Principal;

/// The policy and reach of an agent, for as long as it listens.
pub(super) struct PolicyWatch {
    /// `None` where policies do not change, as for the fixtures.
    principal_updates: Option<Arc<PrincipalUpdates>>,
    who: Principal,
    /// The pending wait for a change; kept across calls, because the caller waits for other events too.
    coming: Option<WakeIsolated<'static, Option<Principal>>>,
    has_changed: bool,
}

impl PolicyWatch {
    /// Starts watching this agent.
    pub(super) fn new(engine: &Engine, who: &Principal) -> Self {
        Self {
            principal_updates: engine.principal_updates(),
            who: who.clone(),
            coming: None,
            has_changed: false,
        }
    }

    /// The agent as of the last reported change.
    pub(super) fn who(&self) -> &Principal {
        &self.who
    }

    /// Continues with the agent of a new request: its policy may have changed since the listener was created.
    pub(super) fn follow(&mut self, who: &Principal) {
        self.has_changed |= other_tools(&self.who, who);
        self.who = who.clone();
        self.coming = None;
    }

    /// Waits until the agent's tools differ from those last reported. Cancel safe.
    pub(super) async fn changes(&mut self) {
        while !std::mem::take(&mut self.has_changed) {
            let Some(principal_updates) = &self.principal_updates else {
                return std::future::pending().await;
            };
            let who = &self.who;
            let coming = self
                .coming
                .get_or_insert_with(|| WakeIsolated::of_boxed(principal_updates(who.clone())));
            let later = coming.await;
            let Some(later) = later else {
                // The agent's access has ended; the holder of its stream ends the stream.
                self.principal_updates = None;
                continue;
            };
            self.follow(&later);
        }
    }
}

fn other_tools(before: &Principal, after: &Principal) -> bool {
    !before.policy().has_tools_of(after.policy()) || before.reach() != after.reach()
}
