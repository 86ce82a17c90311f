//! Adds, changes and revokes agents for the owner.

use serde_json::{Map, Value, json};

use super::actor::{OwnerActor, OwnerCommand};
use super::agent_changes::{between, whole};
use crate::auth::{AgentSpec, add_agent, rotate_token};
use gatewren_base::sys::Secret;
use gatewren_store::vault::{Agent, Vault, VaultError};

/// Adds an agent and returns it with its token, which is not stored.
pub async fn admit(
    (vault, hand): (&Vault, &OwnerActor),
    admission: AgentSpec,
) -> Result<(Agent, Secret), String> {
    let name = admission.name.clone();
    let deed = OwnerCommand {
        command: "agent add",
        target: Some(&name),
        what: whole(&admission),
        change: None,
    };
    hand.recorded(vault, deed, add_agent(vault, admission))
        .await
}

/// Changes an agent if it still is as `before`. Returns the differences, each as `[before, after]`; empty if there
/// are none.
pub async fn edit(
    (vault, hand): (&Vault, &OwnerActor),
    before: &Agent,
    after: &Agent,
) -> Result<Map<String, Value>, String> {
    let changes = between(before, after);
    if changes.is_empty() {
        return Ok(changes);
    }
    let deed = OwnerCommand {
        command: "agent edit",
        target: Some(&before.id),
        what: Value::Object(changes.clone()),
        change: None,
    };
    let replaced = async {
        match vault.agents().replace(before, after).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err("the agent was changed in the meantime; check it and try again".to_owned())
            }
            Err(cause) => Err(VaultError::to_string(&cause)),
        }
    };
    hand.recorded(vault, deed, replaced).await?;
    Ok(changes)
}

/// Revokes an agent; false if it is already revoked.
pub async fn revoke((vault, hand): (&Vault, &OwnerActor), agent: &Agent) -> Result<bool, String> {
    let deed = about("agent revoke", agent);
    hand.recorded(vault, deed, vault.agents().revoke(&agent.id))
        .await
}

/// Issues a new token for an agent and revokes the old one at once.
pub async fn rotate((vault, hand): (&Vault, &OwnerActor), agent: &Agent) -> Result<Secret, String> {
    let deed = about("agent rotate", agent);
    let rotated = hand.recorded(vault, deed, rotate_token(vault, agent));
    let changed = || "the agent was changed in the meantime; try again".to_owned();
    rotated.await?.ok_or_else(changed)
}

fn about<'a>(command: &'static str, agent: &'a Agent) -> OwnerCommand<'a> {
    OwnerCommand {
        command,
        target: Some(&agent.id),
        what: json!({ "name": agent.name }),
        change: None,
    }
}
