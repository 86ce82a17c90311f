//! Who is asking, once that is known.

use std::fmt;
use std::sync::Arc;

use super::grants::GrantBook;
use crate::config::{Policy, Preset, Reach, WHOLE_BOX};

/// The id of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(Arc<str>);

impl AgentId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for AgentId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An agent that has proved who it is: [`super::agents::Agents::identify`] makes one from a token.
#[derive(Debug, Clone)]
pub struct Principal(Arc<Identity>, Option<Arc<GrantBook>>);

/// What is known of an agent that came in.
#[derive(Debug)]
pub(super) struct Identity {
    pub id: AgentId,
    pub name: String,
    pub policy: Policy,
    pub space: String,
    pub reach: Reach,
}

impl Principal {
    pub(super) fn of(identity: &Arc<Identity>, grants: &Arc<GrantBook>) -> Self {
        Self(Arc::clone(identity), Some(Arc::clone(grants)))
    }

    /// One that no token stands for, and that reaches the whole box: fixtures on loopback, and the watchdog's own
    /// probe.
    pub fn without_token(name: &str, preset: Preset) -> Self {
        let identity = Identity {
            id: AgentId::from(name),
            name: name.to_owned(),
            policy: preset.into(),
            space: WHOLE_BOX.to_owned(),
            reach: Reach::everything(),
        };
        Self(Arc::new(identity), None)
    }

    /// The agent's id.
    pub fn agent_id(&self) -> &AgentId {
        &self.0.id
    }

    /// What its owner calls it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it may do.
    pub fn policy(&self) -> &Policy {
        &self.0.policy
    }

    /// Where its policy starts from.
    pub fn preset(&self) -> Preset {
        self.0.policy.preset
    }

    /// The space that it is kept in; [`WHOLE_BOX`] is everything.
    pub fn space(&self) -> &str {
        &self.0.space
    }

    /// Whether its owner allows it, at this moment and for a while, to call a tool about something.
    pub fn is_granted(&self, tool: &str, target: Option<&str>) -> bool {
        let Self(identity, grants) = self;
        let granted = |grants: &Arc<GrantBook>| grants.holds(identity.id.as_str(), tool, target);
        grants.as_ref().is_some_and(granted)
    }

    /// What of the box there is for it.
    pub fn reach(&self) -> &Reach {
        &self.0.reach
    }
}
