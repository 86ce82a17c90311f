//! Validates the names of agents, and finds an agent by name or id.

use gatewren_base::sys::sanitize;
use gatewren_store::vault::{Agent, Vault, check_agent_name};

/// The agent with which `gatewren doctor` makes its call; its token is expired between two runs.
pub const DOCTOR: &str = "gatewren-doctor";

/// Validates a name for a new agent.
pub fn fit(name: &str) -> Result<String, String> {
    check_agent_name(name).map_err(|refusal| refusal.to_string())?;
    Ok(name.to_owned())
}

/// Validates a new name for an agent. The one that it has may stay, even if it is older than the rule.
pub fn fit_new(name: &str, agent: &Agent) -> Result<String, String> {
    if name == agent.name {
        return Ok(name.to_owned());
    }
    fit(name)
}

/// Finds the agent with this id or name. If several have the name, revoked ones are ignored if one is not revoked.
pub fn find(vault: &Vault, asked: &str) -> Result<Agent, String> {
    let agents = vault.agents().list().map_err(|e| e.to_string())?;
    if let Some(agent) = agents.iter().find(|agent| agent.id == asked) {
        return Ok(agent.clone());
    }
    let called: Vec<&Agent> = agents.iter().filter(|agent| agent.name == asked).collect();
    let active = called.iter().filter(|agent| agent.revoked_ms.is_none());
    let mut meant: Vec<&Agent> = active.copied().collect();
    if meant.is_empty() {
        meant = called;
    }
    match meant.as_slice() {
        [agent] => Ok((*agent).clone()),
        [] => Err(format!(
            "unknown agent \"{}\"; gatewren agent list shows all agents",
            sanitize(asked)
        )),
        several => {
            let ids: Vec<&str> = several.iter().map(|agent| agent.id.as_str()).collect();
            let (asked, ids) = (sanitize(asked), ids.join(", "));
            Err(format!(
                "several agents have the name \"{asked}\"; use one of their ids: {ids}"
            ))
        }
    }
}

/// Like `find`, but rejects a revoked agent.
pub fn find_active(vault: &Vault, asked: &str) -> Result<Agent, String> {
    let agent = find(vault, asked)?;
    if agent.revoked_ms.is_some() {
        let name = sanitize(&agent.name);
        return Err(format!(
            "{name} ({}) was revoked; add a new agent with gatewren agent add",
            agent.id
        ));
    }
    Ok(agent)
}
