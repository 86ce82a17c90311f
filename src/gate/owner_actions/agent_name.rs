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
    choose(find_all(vault, asked)?, asked)
}

/// Like `find`, but rejects a revoked agent.
pub fn find_active(vault: &Vault, asked: &str) -> Result<Agent, String> {
    let found = find_all(vault, asked)?;
    if !found.iter().all(is_revoked) {
        return choose(found, asked);
    }
    let revoked = match found.as_slice() {
        [agent] => format!("{} ({}) was revoked", sanitize(&agent.name), agent.id),
        several => all_revoked(asked, &ids(several)),
    };
    Err(format!(
        "{revoked}; add a new agent with gatewren agent add"
    ))
}

/// The agent with this id, or those with this name: the active ones, or else the revoked ones. At least one.
fn find_all(vault: &Vault, asked: &str) -> Result<Vec<Agent>, String> {
    let mut agents = vault.agents().list().map_err(|e| e.to_string())?;
    if let Some(agent) = agents.iter().find(|agent| agent.id == asked) {
        return Ok(vec![agent.clone()]);
    }
    agents.retain(|agent| agent.name == asked);
    if agents.is_empty() {
        return Err(format!(
            "unknown agent \"{}\"; gatewren agent list shows all agents",
            sanitize(asked)
        ));
    }
    if !agents.iter().all(is_revoked) {
        agents.retain(|agent| !is_revoked(agent));
    }
    Ok(agents)
}

fn choose(found: Vec<Agent>, asked: &str) -> Result<Agent, String> {
    <[Agent; 1]>::try_from(found)
        .map(|[agent]| agent)
        .map_err(|several| {
            let ids = ids(&several);
            if several.iter().all(is_revoked) {
                return format!("{}; use one of these ids", all_revoked(asked, &ids));
            }
            let asked = sanitize(asked);
            format!("several agents have the name \"{asked}\"; use one of their ids: {ids}")
        })
}

fn is_revoked(agent: &Agent) -> bool {
    agent.revoked_ms.is_some()
}

fn all_revoked(asked: &str, ids: &str) -> String {
    let asked = sanitize(asked);
    format!("all agents with the name \"{asked}\" are revoked ({ids})")
}

fn ids(agents: &[Agent]) -> String {
    let ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
    ids.join(", ")
}
