//! `gatewren agent revoke`: revokes a token and ends everything that is open with it.

use serde_json::json;

use super::super::owner_action::hand;
use super::house::CliContext;
use gatewren_gate::owner_actions::{find_active_agent, revoke, sanitize};

pub async fn run(house: &CliContext, asked: &str) -> Result<String, String> {
    let agent = find_active_agent(&house.vault, asked)?;
    let revoked = revoke((&house.vault, &hand()), &agent).await?;
    let (name, id) = (sanitize(&agent.name), agent.id);
    if !revoked {
        return Err(format!("{name} ({id}) is already revoked"));
    }
    Ok(if house.json {
        json!({ "revoked": id, "name": agent.name }).to_string()
    } else {
        format!("{name} ({id}) is revoked")
    })
}
