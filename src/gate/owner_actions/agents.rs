//! Adds, changes and revokes agents for the owner.

use serde_json::{Map, Value, json};

use super::agent_changes::{between, whole};
use super::owner_context::{OwnerCommand, OwnerContext};
use crate::auth::{AgentSpec, add_agent, rotate_token};
use gatewren_base::sys::Secret;
use gatewren_store::vault::{Agent, VaultError};

/// Adds an agent and returns it with its token, which is not stored.
pub async fn admit(
    owner: &OwnerContext<'_>,
    admission: AgentSpec,
) -> Result<(Agent, Secret), String> {
    let name = admission.name.clone();
    let command = OwnerCommand {
        command: "agent add",
        target: Some(&name),
        what: whole(&admission),
        change: None,
    };
    let add = add_agent(owner.vault, admission);
    owner.run_audited(command, add).await
}

/// Changes an agent if it still is as `before`. Returns the differences, each as `[before, after]`; empty if there
/// are none.
pub async fn edit(
    owner: &OwnerContext<'_>,
    before: &Agent,
    after: &Agent,
) -> Result<Map<String, Value>, String> {
    let changes = between(before, after);
    if changes.is_empty() {
        return Ok(changes);
    }
    let command = OwnerCommand {
        command: "agent edit",
        target: Some(&before.id),
        what: Value::Object(changes.clone()),
        change: None,
    };
    let replace = async {
        match owner.vault.agents().replace(before, after).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err("the agent was changed in the meantime; check it and try again".to_owned())
            }
            Err(cause) => Err(VaultError::to_string(&cause)),
        }
    };
    owner.run_audited(command, replace).await?;
    Ok(changes)
}

/// Revokes an agent; false if it is already revoked.
pub async fn revoke(owner: &OwnerContext<'_>, agent: &Agent) -> Result<bool, String> {
    let command = about("agent revoke", agent);
    let agents = owner.vault.agents();
    owner.run_audited(command, agents.revoke(&agent.id)).await
}

/// Issues a new token for an agent and revokes the old one at once.
pub async fn rotate(owner: &OwnerContext<'_>, agent: &Agent) -> Result<Secret, String> {
    let command = about("agent rotate", agent);
    let rotated = owner.run_audited(command, rotate_token(owner.vault, agent));
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
