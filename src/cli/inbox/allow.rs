//! `gatewren inbox grant`, `grants` and `ungrant`: what an agent may do for a while without asking each time.

use serde_json::{Value, json};

use super::super::deed::hand;
use super::desk::Desk;
use crate::deeds::{self, Span, end_grant, known_tool, plain};
use crate::sys::rfc3339;
use crate::vault::Grant as Given;

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
    known_tool(&desk.vault, &asked.tool)?;
    let about = (agent.as_str(), asked.tool.as_str(), asked.target.as_deref());
    let given = deeds::grant((&desk.vault, &hand()), about, asked.span).await?;
    Ok(if json {
        as_json(desk, &given).to_string()
    } else {
        line(desk, &given)
    })
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
    if !end_grant((&desk.vault, &hand()), id).await? {
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
