//! Limits how many calls of each agent wait for the owner's decision.

use std::collections::HashMap;
use std::sync::Mutex;

use gatewren_base::sys::lock;
use gatewren_gate::auth::AgentId;

/// The maximum number of waiting calls of an agent; a further call is answered at once with its change. It is lower
/// than `agent_calls`, so that an agent can continue to work while the owner is away.
const MAX_WAITING: usize = 8;

/// The number of waiting calls, by agent.
#[derive(Debug, Default)]
pub(in crate::dispatch) struct OwnerWaits(Mutex<HashMap<AgentId, usize>>);

/// A waiting call; dropping it releases its slot.
pub(in crate::dispatch) struct OwnerWait<'w> {
    among: &'w OwnerWaits,
    agent: AgentId,
}

impl OwnerWaits {
    /// Reserves a slot for a call; `None` if the agent has reached its limit.
    pub(in crate::dispatch) fn begin(&self, agent: &AgentId) -> Option<OwnerWait<'_>> {
        let mut waiting = lock(&self.0);
        let own = waiting.entry(agent.clone()).or_default();
        if *own >= MAX_WAITING {
            return None;
        }
        *own += 1;
        Some(OwnerWait {
            among: self,
            agent: agent.clone(),
        })
    }
}

impl Drop for OwnerWait<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.among.0);
        if let Some(own) = waiting.get_mut(&self.agent) {
            *own -= 1;
            if *own == 0 {
                waiting.remove(&self.agent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::owner_waits::*;

    #[test]
    fn few_calls_of_one_agent_wait_and_each_makes_room() {
        let waits = OwnerWaits::default();
        let (agent, other) = (AgentId::from("a"), AgentId::from("b"));
        let mut waiting: Vec<_> = (0..MAX_WAITING)
            .map(|_| waits.begin(&agent).unwrap())
            .collect();
        assert!(waits.begin(&agent).is_none());
        assert!(waits.begin(&other).is_some());
        drop(waiting.pop());
        assert!(waits.begin(&agent).is_some());
        drop(waiting);
        assert!(lock(&waits.0).is_empty());
    }
}
