//! New agents: those that the owner makes, and the one that `gatewren try` makes for itself; and new tokens.

use super::token::Token;
use crate::config::{Policy, Preset, WHOLE_BOX};
use crate::sys::Secret;
use crate::vault::{Agent, NewAgent, Vault, VaultError};

/// An agent that its owner wants.
#[derive(Debug, Clone)]
pub struct Admission {
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub policy: Policy,
    /// The space that it is kept in; [`WHOLE_BOX`] is everything.
    pub space: String,
    /// When its token ends by itself, in milliseconds since 1970.
    pub expires_ms: Option<u64>,
}

/// Makes an agent of that name and preset and says its token; one of the same name and preset that
/// was there before is revoked, because its token is lost.
///
/// A caller that still has the token asks [`super::agents::Agents::identify`] first.
pub async fn bootstrap(vault: &Vault, name: &str, preset: Preset) -> Result<Secret, VaultError> {
    for agent in vault.agents().list()? {
        if agent.name == name && agent.preset == preset && agent.revoked_ms.is_none() {
            vault.agents().revoke(&agent.id).await?;
        }
    }
    let admission = Admission {
        name: name.to_owned(),
        policy: preset.into(),
        space: WHOLE_BOX.to_owned(),
        expires_ms: None,
    };
    let added = add_agent(vault, admission).await;
    added.map(|(_, token)| token)
}

/// Makes an agent and its token, which is not kept: whoever gets it here is the only one to see it.
pub async fn add_agent(vault: &Vault, admission: Admission) -> Result<(Agent, Secret), VaultError> {
    let (token, hash) = Token::mint()?;
    let Admission {
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

/// Gives an agent a new token, which is not kept either; the old one is good no longer than the answer takes.
/// `None` if the agent is no longer as it was seen.
pub async fn rotate_token(vault: &Vault, agent: &Agent) -> Result<Option<Secret>, VaultError> {
    let (token, hash) = Token::mint()?;
    let after = Agent {
        token_sha256: *hash.as_bytes(),
        ..agent.clone()
    };
    let changed = vault.agents().replace(agent, &after).await?;
    Ok(changed.then_some(token))
}
