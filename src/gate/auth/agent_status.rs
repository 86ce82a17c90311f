//! Interprets an agent's row: its policy and its access.

use super::error::AuthError;
use super::principal::{AgentId, AgentIdentity};
use gatewren_base::config::{Overrides, Policy, Reach, Spaces, WHOLE_SERVER};
use gatewren_store::vault::Agent;

/// Returns an agent's policy. An error if its overrides cannot be read.
pub fn policy_of(agent: &Agent) -> Result<Policy, AuthError> {
    let overrides: Overrides =
        serde_json::from_str(&agent.overrides).map_err(|_| AuthError::Unreadable)?;
    Ok(Policy {
        preset: agent.preset,
        overrides,
    })
}

/// Returns what an agent can access: its space, which must be configured, narrowed by its policy.
pub fn reach_of(agent: &Agent, policy: &Policy, spaces: &Spaces) -> Result<Reach, AuthError> {
    let space = agent.space.as_ref().ok_or(AuthError::NoSpace)?;
    let reach = if space == WHOLE_SERVER {
        Reach::everything()
    } else {
        Reach::of(spaces.get(space).ok_or(AuthError::NoSpace)?)
    };
    Ok(match &policy.overrides.containers {
        Some(containers) => reach.narrow_to(containers),
        None => reach,
    })
}

/// Returns the identity for this row's token.
pub(super) fn identity(agent: &Agent, spaces: &Spaces) -> Result<AgentIdentity, AuthError> {
    let policy = policy_of(agent)?;
    Ok(AgentIdentity {
        id: AgentId::from(agent.id.as_str()),
        name: agent.name.as_str().into(),
        reach: reach_of(agent, &policy, spaces)?,
        policy,
        space: agent.space.as_deref().unwrap_or_default().into(),
        token: agent.token_sha256,
        token_id: Some(AgentIdentity::token_id(&agent.token_sha256)),
    })
}
