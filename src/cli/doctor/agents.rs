//! Checks the agents: unused tokens, expiring tokens, and the owner's password.

use std::fmt::Write as _;

use super::finding::Finding;
use gatewren_base::config::Spaces;
use gatewren_base::sys::now_ms;
use gatewren_gate::owner_actions::{UnguardedAgents, expires_soon, token_status};
use gatewren_store::vault::{Agent, Vault};

/// A token that was not used for this long is reported.
const UNUSED_MS: u64 = 90 * 86_400_000;

/// How long a new token may remain unused.
const NEW_MS: u64 = 7 * 86_400_000;

/// The maximum number of names in one line.
const NAMED: usize = 5;

/// Checks agents and owner.
pub fn look(vault: &Vault, spaces: &Spaces) -> Vec<Finding> {
    let agents = match vault.agents().list() {
        Ok(agents) => agents,
        Err(cause) => {
            let remedy = "systemctl status gatewren";
            return vec![Finding::problem("agents", cause.to_string(), remedy)];
        }
    };
    let mut found = check_agents(&agents, spaces, now_ms());
    found.extend(find_unguarded(vault, spaces));
    found.push(owner(vault));
    found
}

/// Finds agents that may do more than reversible changes without approval.
fn find_unguarded(vault: &Vault, spaces: &Spaces) -> Option<Finding> {
    match UnguardedAgents::find(vault, spaces) {
        Ok(found) => found.map(|found| Finding::note("agents", found.seen, found.remedy)),
        Err(cause) => {
            let remedy = "systemctl status gatewren";
            Some(Finding::problem("agents", cause.to_string(), remedy))
        }
    }
}

fn check_agents(agents: &[Agent], spaces: &Spaces, now_ms: u64) -> Vec<Finding> {
    let kept: Vec<&Agent> = agents
        .iter()
        .filter(|agent| agent.revoked_ms.is_none())
        .collect();
    let active = kept
        .iter()
        .filter(|agent| token_status(agent, spaces).refused.is_none())
        .count();
    let mut found = Vec::new();
    if active == 0 {
        found.push(Finding::warning(
            "agents",
            "no agent has access yet",
            "gatewren agent add NAME --policy observe",
        ));
    }
    let unused = list_names(&kept, |agent| {
        let since = agent.last_used_ms.unwrap_or(agent.created_ms);
        let most = if agent.last_used_ms.is_some() {
            UNUSED_MS
        } else {
            NEW_MS
        };
        token_status(agent, spaces).refused.is_none() && now_ms.saturating_sub(since) > most
    });
    if let Some(names) = unused {
        let seen = format!("unused tokens: those of {names}");
        found.push(Finding::warning(
            "agents",
            seen,
            "gatewren agent revoke NAME",
        ));
    }
    let spaceless = list_names(&kept, |agent| {
        token_status(agent, spaces).word == "no space"
    });
    if let Some(names) = spaceless {
        let seen = format!("the space of {names} is not in the settings, so access is denied");
        found.push(Finding::warning(
            "agents",
            seen,
            "gatewren agent edit NAME --space SPACE",
        ));
    }
    found.extend(find_expiring(&kept, now_ms));
    if found.is_empty() {
        let endless = kept
            .iter()
            .filter(|agent| agent.expires_ms.is_none())
            .count();
        let seen = format!("{active} agents have access; the tokens of {endless} never expire");
        found.push(Finding::good("agents", seen));
    }
    found
}

/// Finds tokens that expire within 30 days.
fn find_expiring(agents: &[&Agent], now_ms: u64) -> Option<Finding> {
    let names = list_names(agents, |agent| expires_soon(agent, now_ms).is_some())?;
    let seen = format!("the tokens of {names} expire within 30 days");
    let remedy = "gatewren agent edit NAME --expires 365d";
    Some(Finding::warning("agents", seen, remedy))
}

/// The names of the agents that match, at most `NAMED`.
fn list_names(agents: &[&Agent], are: impl Fn(&Agent) -> bool) -> Option<String> {
    let names: Vec<&str> = agents
        .iter()
        .filter(|agent| are(agent))
        .map(|agent| agent.name.as_str())
        .collect();
    let more = names.len().saturating_sub(NAMED);
    let mut text = names
        .iter()
        .take(NAMED)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    if more > 0 {
        let _ = write!(text, " and {more} more");
    }
    (!names.is_empty()).then_some(text)
}

fn owner(vault: &Vault) -> Finding {
    match vault.owner().password() {
        Ok(Some(_)) => Finding::good("owner", "the owner's page has a password"),
        Ok(None) => Finding::warning(
            "owner",
            "the owner's page has no password yet",
            "gatewren owner setup",
        ),
        Err(cause) => Finding::problem("owner", cause.to_string(), "systemctl status gatewren"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingState;
    use super::*;
    use gatewren_base::config::Preset;

    fn agent(name: &str, created_ms: u64, last_used_ms: Option<u64>) -> Agent {
        Agent {
            id: format!("agent_{name}"),
            name: name.to_owned(),
            token_sha256: [0; 32],
            preset: Preset::Observe,
            overrides: "{}".to_owned(),
            space: Some("*".to_owned()),
            created_ms,
            expires_ms: None,
            revoked_ms: None,
            last_used_ms,
        }
    }

    #[test]
    fn tokens_that_nobody_uses_are_named() {
        let now = 200 * 86_400_000;
        let states = |agents: &[Agent]| -> Vec<FindingState> {
            check_agents(agents, &Spaces::new(), now)
                .iter()
                .map(|one| one.state)
                .collect()
        };
        assert_eq!(states(&[]), [FindingState::Warning]);
        assert_eq!(
            states(&[agent("new", now - NEW_MS, None)]),
            [FindingState::Good]
        );
        assert_eq!(
            states(&[agent("used", 0, Some(now - UNUSED_MS))]),
            [FindingState::Good]
        );
        let idle = [
            agent("never", now - NEW_MS - 1, None),
            agent("long", 0, Some(1)),
        ];
        let found = check_agents(&idle, &Spaces::new(), now);
        assert!(found[0].seen.contains("never, long"), "{found:?}");
        let ending = Agent {
            expires_ms: Some(now_ms() + 86_400_000),
            ..agent("ending", now, Some(now))
        };
        let found = check_agents(&[ending], &Spaces::new(), now_ms());
        assert!(
            found
                .iter()
                .any(|one| one.seen.contains("tokens of ending")),
            "{found:?}"
        );
        let elsewhere = Agent {
            space: Some("gone".to_owned()),
            ..agent("lost", now, None)
        };
        let found = check_agents(&[elsewhere], &Spaces::new(), now);
        assert!(
            found.iter().any(|one| one.seen.contains("space of lost")),
            "{found:?}"
        );
    }
}
