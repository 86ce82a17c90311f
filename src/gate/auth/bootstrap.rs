//! New agents: those that the owner adds, and those that `gatewren try` adds for itself. Also new tokens.

use super::token::Token;
use gatewren_base::config::{Policy, Preset, WHOLE_SERVER};
use gatewren_base::sys::Secret;
use gatewren_store::vault::{Agent, NewAgent, Vault, VaultError};

/// An agent to add.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// The name that the owner gives it.
    pub name: String,
    /// Its policy.
    pub policy: Policy,
    /// Its space; [`WHOLE_SERVER`] means the host and all containers.
    pub space: String,
    /// When its token expires, in milliseconds since 1970; `None` if it never does.
    pub expires_ms: Option<u64>,
}

/// Returns the name and a new token of an agent with this preset: of the one that an earlier call with the same
/// arguments added, because its token is lost, else of a new one. If another agent has the name, it has the preset
/// behind it.
///
/// A caller that still has the token calls [`super::agents::Agents::identify`] first.
pub async fn bootstrap(
    vault: &Vault,
    name: &str,
    preset: Preset,
) -> Result<(String, Secret), VaultError> {
    let second = format!("{name}-{preset}");
    let agents = vault.agents().list()?;
    // Older versions gave the same name to the agents of all presets.
    let earlier = agents.iter().find(|agent| {
        [name, &second].contains(&agent.name.as_str())
            && agent.preset == preset
            && agent.has_valid_token()
    });
    if let Some(agent) = earlier
        && let Some(token) = rotate_token(vault, agent).await?
    {
        return Ok((agent.name.clone(), token));
    }
    let is_taken = |agent: &Agent| agent.name == name && agent.revoked_ms.is_none();
    let wanted = if agents.iter().any(is_taken) {
        &second
    } else {
        name
    };
    let admission = AgentSpec {
        name: vault.agents().free_name(wanted)?,
        policy: preset.into(),
        space: WHOLE_SERVER.to_owned(),
        expires_ms: None,
    };
    let (agent, token) = add_agent(vault, admission).await?;
    Ok((agent.name, token))
}

/// Adds an agent and returns its token. The token is not stored, so it cannot be shown again.
pub async fn add_agent(vault: &Vault, admission: AgentSpec) -> Result<(Agent, Secret), VaultError> {
    let (token, hash) = Token::mint()?;
    let AgentSpec {
        name,
        policy,
        space,
        expires_ms,
    } = admission;
    let agent = NewAgent {
        name,
        token_sha256: *hash.as_bytes(),
        preset: policy.preset,
        overrides: policy.overrides.to_text(),
        space: Some(space),
        expires_ms,
    };
    Ok((vault.agents().add(agent).await?, token))
}

/// Gives an agent a new token, which is not stored. The old token is revoked once this returns. Returns `None` if
/// the agent was changed since it was read.
pub async fn rotate_token(vault: &Vault, agent: &Agent) -> Result<Option<Secret>, VaultError> {
    let (token, hash) = Token::mint()?;
    let after = Agent {
        token_sha256: *hash.as_bytes(),
        ..agent.clone()
    };
    let changed = vault.agents().replace(agent, &after).await?;
    Ok(changed.then_some(token))
}
