//! Finds the agents that may do more than reversible changes without a proposal or a confirmation.

use super::policy_preview::PolicyPreview;
use super::token_status::token_status;
use crate::auth::policy_of;
use crate::policy::class;
use gatewren_base::config::{Mode, Overrides, Policy, Risk, Spaces};
use gatewren_store::vault::{Agent, OfferedTool, Vault, VaultError};

/// The maximum number of names in one line.
const NAMED: usize = 5;

/// The agents that need no approval for some call, in words.
pub struct UnguardedAgents {
    /// Who they are, and by which policy.
    pub seen: String,
    /// How the owner is asked first.
    pub remedy: String,
}

impl UnguardedAgents {
    /// Finds them among the agents that have access; `None` if there are none.
    pub fn find(vault: &Vault, spaces: &Spaces) -> Result<Option<Self>, VaultError> {
        let (agents, offered) = (vault.agents().list()?, vault.offer().tools()?);
        let found: Vec<(&Agent, String)> = agents
            .iter()
            .filter_map(|agent| Some((agent, find_option(agent, spaces, &offered)?)))
            .collect();
        let Some((first, option)) = found.first() else {
            return Ok(None);
        };
        let first_ones = found.iter().take(NAMED).map(|(agent, _)| {
            let differs = agent.overrides != Overrides::default().to_text();
            let exceptions = if differs { " with exceptions" } else { "" };
            format!("{} ({}{exceptions})", agent.name, agent.preset)
        });
        let names = first_ones.collect::<Vec<_>>().join(", ");
        let more = match found.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(Some(Self {
            seen: format!(
                "{names}{more} may run commands or make lasting changes without a proposal or a confirmation"
            ),
            remedy: format!("gatewren agent edit {} {option}=confirm-owner", first.name),
        }))
    }
}

/// Returns the option of `agent edit` that sets the mode of the agent's first call that needs no approval. Calls of the
/// class `write` can be undone, so their policy may allow them.
fn find_option(agent: &Agent, spaces: &Spaces, offered: &[OfferedTool]) -> Option<String> {
    if token_status(agent, spaces).refused.is_some() {
        return None;
    }
    let policy = policy_of(agent).ok()?;
    let preview = PolicyPreview::of(agent, policy.clone(), spaces, offered);
    let (_, allowed) = preview
        .tools
        .iter()
        .find(|(mode, _)| *mode == Mode::Allow)?;
    let lasts = |risk| matches!(risk, Risk::Execute | Risk::Disrupt | Risk::Persist);
    let mut unguarded = offered
        .iter()
        .filter(|tool| lasts(tool.risk) && allowed.contains(&tool.name));
    unguarded.next().map(|tool| option_for(tool, &policy))
}

/// A mode of the tool itself wins over that of its class.
fn option_for(tool: &OfferedTool, policy: &Policy) -> String {
    if class(policy, tool.risk) == Mode::Allow {
        format!("--mode {}", tool.risk.as_str())
    } else {
        format!("--tool {}", tool.name)
    }
}
