//! Validates the names of agents, and finds an agent by name or id.

use gatewren_base::sys::sanitize;
use gatewren_store::vault::{Agent, Vault};

/// The longest name.
const MAX_CHARS: usize = 64;

/// The prefix of every id; a name with it could be taken for one.
const ID_PREFIX: &str = "agent_";

/// Validates a name for a new agent.
pub fn fit(name: &str) -> Result<String, String> {
    let fits = (1..=MAX_CHARS).contains(&name.chars().count())
        && !name.chars().any(char::is_control)
        && name.trim() == name
        && !name.starts_with(['-', '*'])
        && !name.starts_with(ID_PREFIX);
    if fits {
        return Ok(name.to_owned());
    }
    Err(format!(
        "a name must have 1 to {MAX_CHARS} characters, no control codes and no space at its ends, and must not \
         begin with -, * or {ID_PREFIX}"
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_and_not_taken_for_anything_else() {
        for good in ["claude", "Mac mini", "n8n", "ännä", &"x".repeat(64)] {
            assert!(fit(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            " x",
            "x ",
            "a\nb",
            "\u{1b}[31m",
            "-x",
            "*",
            "agent_1",
            &"x".repeat(65),
        ] {
            assert!(fit(bad).is_err(), "{bad:?}");
        }
    }
}
