//! `gatewren agent edit`: changes an agent's policy, effective from its next call.

use clap::ValueEnum;
use serde_json::json;

use super::super::owner_action::owner_context;
use super::{context::CliContext, limits::PolicyOverrideArgs};
use gatewren_base::config::{Overrides, Preset};
use gatewren_base::sys::sanitize_lines;
use gatewren_gate::auth::policy_of;
use gatewren_gate::owner_actions::{
    Expiry, change_lines, choose_space, edit, find_active_agent, fit_new_name, sanitize,
};
use gatewren_store::vault::Agent;

#[derive(Debug, clap::Args)]
pub struct AgentEditArgs {
    /// The agent's name, or its id as `list` shows it
    #[arg(value_name = "AGENT")]
    agent: String,

    /// Rename the agent
    #[arg(long = "name", value_name = "NAME")]
    name: Option<String>,

    /// The preset that its policy is based on: observe, suggest, operate or admin
    #[arg(long, value_name = "PRESET")]
    policy: Option<Preset>,

    /// The space that the agent is limited to, or '*' for the host and all containers
    #[arg(long, value_name = "NAME")]
    space: Option<String>,

    /// When its token expires: after 30d, on 2027-01-31, or never
    #[arg(long, value_name = "WHEN")]
    expires: Option<Expiry>,

    /// Its token never expires
    #[arg(long, conflicts_with = "expires")]
    no_expiry: bool,

    #[command(flatten)]
    options: PolicyOverrideArgs,

    /// Remove an override of the preset, before the other options apply; repeat it for more
    #[arg(long, value_name = "WHAT", value_enum)]
    clear: Vec<Clear>,
}

/// The overrides that can be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clear {
    /// Allow every toolset
    Toolsets,
    /// Allow every container of its space
    Containers,
    /// Remove the modes of single tools
    Tools,
    /// Remove the modes of classes
    Modes,
    /// Allow every address
    Networks,
    /// Use the default number of calls a minute
    Rate,
    /// Use the default number of concurrent calls
    Concurrent,
    /// Remove all overrides
    All,
}

impl Clear {
    fn apply(self, overrides: &mut Overrides) {
        match self {
            Self::Toolsets => overrides.toolsets = None,
            Self::Containers => overrides.containers = None,
            Self::Tools => overrides.tools.clear(),
            Self::Modes => overrides.modes.clear(),
            Self::Networks => overrides.networks = None,
            Self::Rate => overrides.calls_per_minute = None,
            Self::Concurrent => overrides.concurrent_calls = None,
            Self::All => *overrides = Overrides::default(),
        }
    }
}

pub async fn run(context: &CliContext, args: &AgentEditArgs) -> Result<String, String> {
    let before = find_active_agent(&context.vault, &args.agent)?;
    let after = edited_agent(context, args, &before)?;
    let changes = edit(&owner_context(&context.vault), &before, &after).await?;
    if changes.is_empty() {
        return Err(format!(
            "{} already has these values; gatewren agent edit --help lists what can be changed",
            sanitize(&before.name)
        ));
    }
    if context.json {
        return Ok(json!({ "id": after.id, "name": after.name, "changed": changes }).to_string());
    }
    let (name, id) = (sanitize(&after.name), &after.id);
    let lines = change_lines(&changes).join("\n");
    Ok(format!(
        "{name} ({id}) is changed; this applies from its next call:\n{}",
        sanitize_lines(&lines)
    ))
}

fn edited_agent(
    context: &CliContext,
    args: &AgentEditArgs,
    before: &Agent,
) -> Result<Agent, String> {
    // Unreadable overrides make every call fail. With `--clear all`, the options given now replace them.
    let mut overrides = match policy_of(before) {
        Ok(policy) => policy.overrides,
        Err(_) if args.clear.contains(&Clear::All) => Overrides::default(),
        Err(_) => return Err(unreadable(before)),
    };
    for clear in &args.clear {
        clear.apply(&mut overrides);
    }
    args.options.apply(&mut overrides, &context.tools)?;
    let mut after = before.clone();
    after.overrides = overrides.to_text();
    if let Some(name) = &args.name {
        after.name = fit_new_name(name, before)?;
    }
    if let Some(asked) = &args.space {
        after.space = Some(choose_space(Some(asked), &context.spaces)?);
    }
    after.preset = args.policy.unwrap_or(before.preset);
    after.expires_ms = match args.expires {
        Some(Expiry(ms)) => ms,
        None if args.no_expiry => None,
        None => before.expires_ms,
    };
    Ok(after)
}

fn unreadable(agent: &Agent) -> String {
    format!(
        "the policy overrides of {} were written by another version of gatewren and cannot be read; --clear all \
         removes them",
        sanitize(&agent.name)
    )
}
