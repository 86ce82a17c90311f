//! The arguments of `gatewren agent`, and their dispatch to the subcommands.

use std::process::ExitCode;

use clap::Subcommand;

use super::super::console::output::conclude;
use super::super::console::runtime;
use super::super::console::target::SubcommandArgs;
use super::{add, context::CliContext, edit, list, revoke, rotate, show};

/// The end of the help.
pub const EXAMPLES: &str = "\
Examples:
  gatewren agent add claude --policy observe
  gatewren agent add claude --policy operate --space media --expires 30d
  gatewren agent add n8n --policy operate --toolset containers --network 192.168.1.0/24 --rate 60
  gatewren agent edit claude --mode execute=deny --tool container_restart=allow
  gatewren agent edit claude --clear networks --no-expiry
  gatewren agent show claude
  gatewren agent rotate claude
  gatewren agent revoke claude

Policies:
  observe   reads; changes nothing
  suggest   reads, and proposes changes to the owner
  operate   makes reversible changes, and proposes the rest
  admin     does everything; the most dangerous calls only after confirmation
Classes of tools: read, scan (sends packets to other machines or ports), write (reversible), disrupt
(stops, destroys, cuts access), execute (runs code), reveal (may show secrets), persist (creates
lasting access, or writes what root may run).
Modes: allow, confirm (asks the person at the client), confirm-owner (asks the owner in the inbox; a
client that can wait gets the result), propose (a change in the inbox), deny (the tool does not
exist for the agent); default removes the override.

A change applies from the agent's next call. When a token is revoked or replaced, everything that
is open with it ends. The audit records each change.";

/// The arguments of the command.
pub type AgentArgs = SubcommandArgs<AgentSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum AgentSubcommand {
    /// Create an agent and print its token once
    Add(add::AgentAddArgs),
    /// List the agents
    List,
    /// Show what an agent may do
    Show(AgentNameArgs),
    /// Change what an agent may do, from its next call on
    Edit(edit::AgentEditArgs),
    /// Revoke an agent's token and end everything that it has open
    Revoke(AgentNameArgs),
    /// Give an agent a new token, printed once, and revoke the old one at once
    Rotate(AgentNameArgs),
}

/// One agent.
#[derive(Debug, clap::Args)]
pub struct AgentNameArgs {
    /// The agent's name, or its id as `list` shows it
    #[arg(value_name = "AGENT")]
    pub agent: String,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &AgentArgs) -> ExitCode {
    conclude(act(args))
}

fn act(args: &AgentArgs) -> Result<String, String> {
    // The order matters: root's own files are read before root privileges are dropped.
    let spaces = args.place.settings()?.spaces;
    let vault = args.place.vault()?;
    let context = CliContext {
        spaces,
        tools: vault.offer().tools().map_err(|e| e.to_string())?,
        vault,
        json: args.json,
        options: args.place.options(),
    };
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    let done = match &args.subcommand {
        AgentSubcommand::Add(args) => runtime.block_on(add::run(&context, args)),
        AgentSubcommand::Edit(args) => runtime.block_on(edit::run(&context, args)),
        AgentSubcommand::Revoke(which) => runtime.block_on(revoke::run(&context, &which.agent)),
        AgentSubcommand::Rotate(which) => runtime.block_on(rotate::run(&context, &which.agent)),
        AgentSubcommand::Show(which) => show::run(&context, &which.agent),
        AgentSubcommand::List => list::run(&context),
    };
    done.map_err(|words| args.place.complete_hint(words))
}
