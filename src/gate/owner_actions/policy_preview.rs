//! The effect of a policy on the existing tools.

use crate::auth::reach_of;
use crate::policy::{PolicySubject, lets_propose, mode, shows};
use gatewren_base::config::{HelperClass, Mode, Policy, Reach, Spaces};
use gatewren_store::vault::{Agent, OfferedTool};

/// What an agent would see and be allowed to do.
pub struct PolicyPreview {
    /// Its policy.
    pub policy: Policy,
    /// The tools that exist for the agent, grouped by the mode of their calls.
    pub tools: Vec<(Mode, Vec<String>)>,
    /// The tools that it would have if the owner had not switched them off on this host, with the key that did.
    pub off: Vec<(HelperClass, String)>,
    /// The number of tools hidden from it.
    pub hidden: usize,
}

impl PolicyPreview {
    /// Computes the effect of this policy for an agent, given the spaces and tools.
    pub fn of(agent: &Agent, policy: Policy, spaces: &Spaces, offered: &[OfferedTool]) -> Self {
        // An agent without a space reaches nothing.
        let reach = reach_of(agent, &policy, spaces).unwrap_or_default();
        let becomes = |tool: &OfferedTool| {
            let subject = PolicySubject {
                name: &tool.name,
                toolset: &tool.toolset,
                risk: tool.risk,
            };
            match () {
                () if !is_within(tool, &reach) => Mode::Deny,
                () if shows(&policy, subject) => mode(&policy, subject),
                // A tool that the agent cannot call but can propose to call.
                () if lets_propose(&policy, subject) => Mode::Propose,
                () => Mode::Deny,
            }
        };
        let (here, off): (Vec<_>, Vec<_>) = offered.iter().partition(|t| t.off.is_none());
        let of = |wanted: Mode| {
            let fitting = here.iter().filter(|tool| becomes(tool) == wanted);
            let names: Vec<String> = fitting.map(|tool| tool.name.clone()).collect();
            (wanted, names)
        };
        let tools = [
            Mode::Allow,
            Mode::Confirm,
            Mode::ConfirmOwner,
            Mode::Propose,
        ];
        let tools = tools.map(of);
        Self {
            hidden: of(Mode::Deny).1.len(),
            off: off
                .iter()
                .filter(|tool| becomes(tool) != Mode::Deny)
                .filter_map(|tool| Some((tool.off?, tool.name.clone())))
                .collect(),
            tools: tools
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .collect(),
            policy,
        }
    }
}

fn is_within(tool: &OfferedTool, reach: &Reach) -> bool {
    (!tool.needs_host || reach.host()) && (!tool.needs_everything || reach.is_everything())
}
