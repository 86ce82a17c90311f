//! `gatewren agent rotate`: a new token for an agent; the old one ends at once, as a token does that was seen by
//! somebody whom it does not concern.

use serde_json::json;

use super::super::deed::{Deed, recorded};
use super::super::plain::plain;
use super::{house::House, name};
use crate::auth::rotate_token;

pub async fn run(house: &House, asked: &str) -> Result<String, String> {
    let agent = name::find_active(&house.vault, asked)?;
    let deed = Deed {
        command: "agent rotate",
        target: Some(&agent.id),
        what: json!({ "name": agent.name }),
        change: None,
    };
    let rotated = recorded(&house.vault, deed, rotate_token(&house.vault, &agent)).await?;
    let token = rotated.ok_or("the agent was changed by somebody else meanwhile; try again")?;
    let (name, id, token) = (plain(&agent.name), agent.id, token.expose());
    Ok(if house.json {
        json!({ "id": id, "name": agent.name, "token": token }).to_string()
    } else {
        format!(
            "The old token of {name} ({id}) is good no more. Its new one, which is not shown again:\n{token}"
        )
    })
}
