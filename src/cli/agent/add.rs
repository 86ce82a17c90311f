//! `gatewren agent add`: creates an agent and prints its token once.

use serde_json::json;

use super::super::console::style::is_read_by_person;
use super::super::owner_action::owner_context;
use super::{context::CliContext, wanted::NewAgentArgs};
use gatewren_base::sys::rfc3339;
use gatewren_gate::owner_actions::{admit, sanitize, valid_until};

#[derive(Debug, clap::Args)]
pub struct AgentAddArgs {
    #[command(flatten)]
    wanted: NewAgentArgs,
}

pub async fn run(context: &CliContext, args: &AgentAddArgs) -> Result<String, String> {
    let admission = args.wanted.admission(&context.spaces, &context.tools)?;
    let (agent, token) = admit(&owner_context(&context.vault), admission).await?;
    let token = token.expose();
    let space = agent.space.unwrap_or_default();
    if context.json {
        return Ok(json!({
            "id": agent.id, "name": agent.name, "policy": agent.preset.as_str(), "space": space,
            "expires": agent.expires_ms.map(rfc3339), "token": token,
        })
        .to_string());
    }
    let within = match space.as_str() {
        "*" => String::new(),
        space => format!(" in the space {space}"),
    };
    let until = valid_until(agent.expires_ms);
    let (name, id, preset) = (sanitize(&agent.name), agent.id, agent.preset);
    // Programs take the last word as the token.
    let next = if is_read_by_person() {
        let options = &context.options;
        format!("\n\nConnect it: gatewren client-config claude-code --agent {name}{options}")
    } else {
        String::new()
    };
    Ok(format!(
        "{name} ({id}) has the policy {preset}{within}. Its token, {until} and not shown again:\n{token}{next}"
    ))
}
