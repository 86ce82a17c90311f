//! `gatewren agent rotate`: gives an agent a new token. The old one is revoked at once, as after a leak.

use serde_json::json;

use super::super::owner_action::owner_context;
use super::context::CliContext;
use gatewren_base::sys::rfc3339;
use gatewren_gate::owner_actions::{find_active_agent, rotate, sanitize, valid_until};

pub async fn run(context: &CliContext, asked: &str) -> Result<String, String> {
    let agent = find_active_agent(&context.vault, asked)?;
    let token = rotate(&owner_context(&context.vault), &agent).await?;
    let (name, id, token) = (sanitize(&agent.name), agent.id, token.expose());
    Ok(if context.json {
        json!({
            "id": id, "name": agent.name, "expires": agent.expires_ms.map(rfc3339), "token": token,
        })
        .to_string()
    } else {
        let until = valid_until(agent.expires_ms);
        format!(
            "The old token of {name} ({id}) is revoked. The new token, {until} and not shown again:\n{token}"
        )
    })
}
