//! Grants: what an agent may do for a while without asking each time.

use serde_json::json;

use super::hand::{Deed, Hand};
use super::span::Span;
use crate::config::nearest;
use crate::sys::{now_ms, rfc3339};
use crate::vault::{Grant, NewGrant, Vault};

/// Refuses a tool that the server did not offer when it was last started: a slip would look like a grant.
pub fn known_tool(vault: &Vault, tool: &str) -> Result<(), String> {
    let offered = vault.offer().tools().map_err(|e| e.to_string())?;
    let names = offered.iter().map(|offered| offered.name.as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() || names.contains(&tool) {
        return Ok(());
    }
    let near = nearest(tool, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!("there is no tool {tool:?} on this box{near}"))
}

/// Gives an agent a tool, about a target or about whatever it reaches.
pub async fn grant(
    (vault, hand): (&Vault, &Hand),
    (agent, tool, target): (&str, &str, Option<&str>),
    span: Span,
) -> Result<Grant, String> {
    let until_ms = now_ms().saturating_add(span.0);
    let deed = Deed {
        command: "inbox grant",
        what: json!({ "agent": agent, "tool": tool, "target": target, "until": rfc3339(until_ms) }),
        target,
        change: None,
    };
    let new = NewGrant {
        agent: agent.to_owned(),
        tool: tool.to_owned(),
        target: target.map(str::to_owned),
        given_by: hand.by.clone(),
        until_ms,
    };
    hand.recorded(vault, deed, vault.grants().add(new)).await
}

/// Ends a grant; false if none of that id holds.
pub async fn end_grant((vault, hand): (&Vault, &Hand), id: &str) -> Result<bool, String> {
    let deed = Deed {
        command: "inbox ungrant",
        what: json!({ "grant": id }),
        target: None,
        change: None,
    };
    let end = async {
        let ended = vault.grants().end(id).await;
        ended.map(|ended| (ended, if ended { "ok" } else { "refused" }))
    };
    hand.recorded_as(vault, deed, end).await
}
