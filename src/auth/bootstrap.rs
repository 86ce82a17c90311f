//! New agents: those that the owner makes, and the one that `gatewren try` makes for itself.

use super::token::Token;
use crate::config::{Preset, WHOLE_BOX};
use crate::sys::Secret;
use crate::vault::{Agent, NewAgent, Vault, VaultError};

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
    let added = add_agent(vault, name, preset, WHOLE_BOX).await;
    added.map(|(_, token)| token)
}

/// Makes an agent and its token, which is not kept: whoever gets it here is the only one to see it.
pub async fn add_agent(
    vault: &Vault,
    name: &str,
    preset: Preset,
    space: &str,
) -> Result<(Agent, Secret), VaultError> {
    let (token, hash) = Token::mint()?;
    let agent = NewAgent {
        name: name.to_owned(),
        token_sha256: *hash.as_bytes(),
        preset,
        overrides: "{}".to_owned(),
        space: Some(space.to_owned()),
        expires_ms: None,
    };
    Ok((vault.agents().add(agent).await?, token))
}
