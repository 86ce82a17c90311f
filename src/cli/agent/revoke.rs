//! `gatewren agent revoke`: revokes a token and ends everything that is open with it.

use serde_json::json;

use super::super::owner_action::owner_context;
use super::context::CliContext;
use gatewren_gate::owner_actions::{find_active_agent, revoke, sanitize};

pub async fn run(context: &CliContext, asked: &str) -> Result<String, String> {
    let agent = find_active_agent(&context.vault, asked)?;
    let revoked = revoke(&owner_context(&context.vault), &agent).await?;
    let (name, id) = (sanitize(&agent.name), agent.id);
    if !revoked {
        return Err(format!("{name} ({id}) is already revoked"));
    }
    Ok(if context.json {
        json!({ "revoked": id, "name": agent.name }).to_string()
    } else {
        format!("{name} ({id}) is revoked")
    })
}
