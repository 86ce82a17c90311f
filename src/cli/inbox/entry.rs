//! The arguments of `gatewren inbox`, and their dispatch to the subcommands.

use std::process::ExitCode;

use clap::Subcommand;

use super::super::console::output::{conclude, fail};
use super::super::console::runtime;
use super::super::console::target::SubcommandArgs;
use super::{allow, context::InboxContext, decide, look};

/// The arguments of the command.
pub type InboxArgs = SubcommandArgs<InboxSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum InboxSubcommand {
    /// List pending and running changes, the newest first
    List(look::InboxListArgs),
    /// Show one change in full, with its exact arguments, or all pending changes of an agent
    Show(look::InboxShowArgs),
    /// Approve changes: each runs once, exactly as proposed
    ///
    /// Exits with 0 if all were approved, with 3 if one could not be, with 1 if nothing could be done. A change
    /// cannot be approved if it was already decided on, has expired, or differs from the proposal. With --wait it
    /// exits with 4 if one was approved but not applied.
    Approve(decide::InboxApproveArgs),
    /// Reject changes that have not started
    ///
    /// Exits with 0 if all were rejected, with 3 if one could not be, with 1 if nothing could be done.
    Reject(decide::InboxRejectArgs),
    /// Allow an agent a tool for a limited time, without asking
    Grant(allow::InboxGrantArgs),
    /// List the active grants
    Grants,
    /// End a grant before it expires
    Ungrant {
        /// The id of the grant, as `grants` shows it
        #[arg(value_name = "ID")]
        grant: String,
    },
}

/// Runs the command. No server has to run: it applies the decisions when it starts.
pub fn run(args: &InboxArgs) -> ExitCode {
    let opened = args.place.vault().and_then(InboxContext::new);
    let (inbox, runtime) = match (opened, runtime::build()) {
        (Ok(inbox), Ok(runtime)) => (inbox, runtime),
        (Err(words), _) => return fail(&words),
        (_, Err(cause)) => return fail(&cause),
    };
    let json = args.json;
    let state = args.place.file("state.db").ok();
    match &args.subcommand {
        InboxSubcommand::List(which) => conclude(look::list(&inbox, which, json)),
        InboxSubcommand::Show(which) => conclude(look::show(&inbox, state.as_deref(), which, json)),
        InboxSubcommand::Approve(asked) => {
            runtime.block_on(decide::approve(&inbox, state.as_deref(), asked, json))
        }
        InboxSubcommand::Reject(asked) => runtime.block_on(decide::reject(&inbox, asked, json)),
        InboxSubcommand::Grant(asked) => {
            conclude(runtime.block_on(allow::grant(&inbox, asked, json)))
        }
        InboxSubcommand::Grants => conclude(allow::list(&inbox, json)),
        InboxSubcommand::Ungrant { grant } => {
            conclude(runtime.block_on(allow::end(&inbox, grant, json)))
        }
    }
}
