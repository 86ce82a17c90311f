//! `gatewren inbox grant`, `grants` and `ungrant`: what an agent may do for a while without asking each time.

use serde_json::{Value, json};

use super::super::deed::{Deed, owner, recorded, recorded_as};
use super::super::plain::plain;
use super::desk::Desk;
use super::span::Span;
use crate::config::nearest;
use crate::sys::{now_ms, rfc3339};
use crate::vault::{Grant as Given, NewGrant};

/// What is granted to whom.
#[derive(Debug, clap::Args)]
pub struct Grant {
    /// The agent: its id or its name
    agent: String,
    /// The tool, as `tools/list` names it
    tool: String,
    /// Only for calls about this container or unit; about whatever the agent reaches when absent
    #[arg(long, visible_alias = "container", value_name = "NAME")]
    target: Option<String>,
    /// For how long, such as 30m or 2h; 30d at most
    #[arg(long = "for", value_name = "TIME")]
    span: Span,
}

/// Gives a grant.
pub async fn grant(desk: &Desk, asked: &Grant, json: bool) -> Result<String, String> {
    let agent = desk.agent(&asked.agent)?;
    known(desk, &asked.tool)?;
    let given = give(
        desk,
        (&agent, &asked.tool, asked.target.as_deref()),
        asked.span,
    )
    .await?;
    Ok(if json {
        as_json(desk, &given).to_string()
    } else {
        line(desk, &given)
    })
}

/// Refuses a tool that the server did not offer when it was last started: a slip would look like a grant.
fn known(desk: &Desk, tool: &str) -> Result<(), String> {
    let offered = desk.vault.offer().tools().map_err(|e| e.to_string())?;
    let names = offered.iter().map(|offered| offered.name.as_str());
    let names: Vec<&str> = names.collect();
    if names.is_empty() || names.contains(&tool) {
        return Ok(());
    }
    let near = nearest(tool, names.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    Err(format!("there is no tool {tool:?} on this box{near}"))
}

/// Gives an agent a tool, about a target or about whatever it reaches, on record.
pub async fn give(
    desk: &Desk,
    (agent, tool, target): (&str, &str, Option<&str>),
    span: Span,
) -> Result<Given, String> {
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
        given_by: owner(),
        until_ms,
    };
    recorded(&desk.vault, deed, desk.vault.grants().add(new)).await
}

/// The grants that hold.
pub fn list(desk: &Desk, json: bool) -> Result<String, String> {
    let grants = desk.vault.grants().holding().map_err(|e| e.to_string())?;
    if json {
        let rows = grants.iter().map(|grant| as_json(desk, grant));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if grants.is_empty() {
        return Ok("nothing is granted".to_owned());
    }
    let lines: Vec<String> = grants.iter().map(|grant| line(desk, grant)).collect();
    Ok(lines.join("\n"))
}

/// Ends a grant.
pub async fn end(desk: &Desk, id: &str, json: bool) -> Result<String, String> {
    let deed = Deed {
        command: "inbox ungrant",
        what: json!({ "grant": id }),
        target: None,
        change: None,
    };
    let end = async {
        let ended = desk.vault.grants().end(id).await;
        ended.map(|ended| (ended, if ended { "ok" } else { "refused" }))
    };
    let ended = recorded_as(&desk.vault, deed, end).await?;
    if !ended {
        return Err(format!(
            "no grant {id} holds; `gatewren inbox grants` shows them"
        ));
    }
    Ok(if json {
        json!({ "ended": id }).to_string()
    } else {
        format!("{id} has ended")
    })
}

fn as_json(desk: &Desk, grant: &Given) -> Value {
    json!({
        "id": grant.id,
        "agent": grant.agent,
        "agent_name": desk.name(&grant.agent),
        "tool": grant.tool,
        "target": grant.target,
        "given_by": grant.given_by,
        "given": rfc3339(grant.given_ms),
        "until": rfc3339(grant.until_ms),
    })
}

fn line(desk: &Desk, grant: &Given) -> String {
    let about = grant.target.as_deref().unwrap_or("whatever it reaches");
    plain(&format!(
        "{}  until {}: {} may call {} about {about} without asking (by {})",
        grant.id,
        rfc3339(grant.until_ms),
        desk.name(&grant.agent),
        grant.tool,
        grant.given_by
    ))
}
