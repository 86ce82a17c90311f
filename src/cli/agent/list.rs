//! `gatewren agent list`: prints one line for each agent.

use serde_json::{Value, json};

use super::super::console::moment::moment;
use super::super::console::table::table;
use super::context::CliContext;
use gatewren_base::sys::rfc3339;
use gatewren_gate::owner_actions::{DOCTOR_AGENT, sanitize, token_status};
use gatewren_store::vault::Agent;

pub fn run(context: &CliContext) -> Result<String, String> {
    let agents = context.vault.agents().list().map_err(|e| e.to_string())?;
    if context.json {
        let rows = agents.iter().map(|agent| row(context, agent));
        return Ok(Value::Array(rows.collect()).to_string());
    }
    if agents.is_empty() {
        return Ok(
            "there are no agents; create one with: gatewren agent add NAME --policy observe"
                .to_owned(),
        );
    }
    let head = ["id", "name", "policy", "space", "state", "last used"].map(str::to_owned);
    let mut rows = vec![head];
    let shown = agents.iter().filter(|agent| !is_idle_doctor(agent));
    rows.extend(shown.map(|agent| cells(context, agent)));
    Ok(table(&rows))
}

/// Whether this is the agent of `gatewren doctor` between two runs, which would only look like a token that has
/// expired. JSON has it.
fn is_idle_doctor(agent: &Agent) -> bool {
    agent.name == DOCTOR_AGENT && !agent.has_valid_token()
}

/// An agent as JSON, without the details of its policy.
pub fn row(context: &CliContext, agent: &Agent) -> Value {
    let overrides: Value = serde_json::from_str(&agent.overrides).unwrap_or_default();
    json!({
        "id": agent.id, "name": agent.name, "policy": agent.preset.as_str(), "overrides": overrides,
        "space": agent.space, "state": token_status(agent, &context.spaces).word,
        "created": rfc3339(agent.created_ms), "expires": agent.expires_ms.map(rfc3339),
        "revoked": agent.revoked_ms.map(rfc3339), "last_used": agent.last_used_ms.map(rfc3339),
    })
}

fn cells(context: &CliContext, agent: &Agent) -> [String; 6] {
    let used = agent
        .last_used_ms
        .map_or_else(|| "never".to_owned(), moment);
    let differs = if agent.overrides == "{}" { "" } else { "+" };
    [
        agent.id.clone(),
        sanitize(&agent.name),
        format!("{}{differs}", agent.preset),
        sanitize(agent.space.as_deref().unwrap_or("-")),
        token_status(agent, &context.spaces).word.to_owned(),
        used,
    ]
}
