//! Agents come, change and go on the owner's word.

use serde_json::{Map, Value, json};

use super::agent_changes::{between, whole};
use super::hand::{Deed, Hand};
use crate::auth::{Admission, add_agent, rotate_token};
use crate::sys::Secret;
use crate::vault::{Agent, Vault, VaultError};

/// A new agent and its token, which is not kept.
pub async fn admit(
    (vault, hand): (&Vault, &Hand),
    admission: Admission,
) -> Result<(Agent, Secret), String> {
    let name = admission.name.clone();
    let deed = Deed {
        command: "agent add",
        target: Some(&name),
        what: whole(&admission),
        change: None,
    };
    hand.recorded(vault, deed, add_agent(vault, admission))
        .await
}

/// Changes an agent from what was seen; what differs, each as `[before, after]`: nothing where it is so already.
pub async fn edit(
    (vault, hand): (&Vault, &Hand),
    before: &Agent,
    after: &Agent,
) -> Result<Map<String, Value>, String> {
    let changes = between(before, after);
    if changes.is_empty() {
        return Ok(changes);
    }
    let deed = Deed {
        command: "agent edit",
        target: Some(&before.id),
        what: Value::Object(changes.clone()),
        change: None,
    };
    let replaced = async {
        match vault.agents().replace(before, after).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(
                "the agent was changed by somebody else meanwhile; look at it and try again"
                    .to_owned(),
            ),
            Err(cause) => Err(VaultError::to_string(&cause)),
        }
    };
    hand.recorded(vault, deed, replaced).await?;
    Ok(changes)
}

/// Ends an agent's access; false if somebody else did meanwhile.
pub async fn revoke((vault, hand): (&Vault, &Hand), agent: &Agent) -> Result<bool, String> {
    let deed = about("agent revoke", agent);
    hand.recorded(vault, deed, vault.agents().revoke(&agent.id))
        .await
}

/// Gives an agent a new token; the old one ends at once.
pub async fn rotate((vault, hand): (&Vault, &Hand), agent: &Agent) -> Result<Secret, String> {
    let deed = about("agent rotate", agent);
    let rotated = hand.recorded(vault, deed, rotate_token(vault, agent));
    let changed = || "the agent was changed by somebody else meanwhile; try again".to_owned();
    rotated.await?.ok_or_else(changed)
}

fn about<'a>(command: &'static str, agent: &'a Agent) -> Deed<'a> {
    Deed {
        command,
        target: Some(&agent.id),
        what: json!({ "name": agent.name }),
        change: None,
    }
}
