//! `gatewren agent revoke`: a token ends, with everything that it has open.

use serde_json::json;

use super::super::deed::{Deed, recorded};
use super::super::plain::plain;
use super::{house::House, name};

pub async fn run(house: &House, asked: &str) -> Result<String, String> {
    let agent = name::find_active(&house.vault, asked)?;
    let deed = Deed {
        command: "agent revoke",
        target: Some(&agent.id),
        what: json!({ "name": agent.name }),
        change: None,
    };
    let agents = house.vault.agents();
    let revoked = recorded(&house.vault, deed, agents.revoke(&agent.id)).await?;
    let (name, id) = (plain(&agent.name), agent.id);
    if !revoked {
        return Err(format!(
            "{name} ({id}) was revoked by somebody else meanwhile"
        ));
    }
    Ok(if house.json {
        json!({ "revoked": id, "name": agent.name }).to_string()
    } else {
        format!("{name} ({id}) is revoked")
    })
}
