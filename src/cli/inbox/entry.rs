//! What a person types after `gatewren inbox`, and where it goes.

use std::process::ExitCode;

use clap::Subcommand;

use super::super::{
    place::Place,
    runtime,
    say::{conclude, fail},
};
use super::{allow, decide, desk::Desk, look};

/// Decide on what agents propose, and allow things for a while.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List what waits or runs, the newest first
    List(look::Which),
    /// Show all of one change, with its exact arguments, or of all that waits of an agent
    Show(look::WhichShown),
    /// Approve changes: each runs once, just as it was proposed
    ///
    /// Exits with 0 when all were approved, with 3 when one could not be (it was decided on before, its time is over,
    /// or it is not what was proposed), with 1 when nothing could be done. With --wait it exits with 4 when one was
    /// approved and then not done.
    Approve(decide::Approve),
    /// Reject changes that have not begun
    ///
    /// Exits with 0 when all were rejected, with 3 when one could not be, with 1 when nothing could be done.
    Reject(decide::Reject),
    /// Allow an agent a tool for a while, without asking each time
    Grant(allow::Grant),
    /// List what is allowed for a while
    Grants,
    /// End a grant before its time
    Ungrant {
        /// Its id, as `grants` shows it
        #[arg(value_name = "ID")]
        grant: String,
    },
}

/// Runs the command; no server need run: it finds what was decided when it starts.
pub fn run(args: &Args) -> ExitCode {
    let opened = args.place.vault().and_then(Desk::new);
    let (desk, runtime) = match (opened, runtime::build()) {
        (Ok(desk), Ok(runtime)) => (desk, runtime),
        (Err(words), _) => return fail(&words),
        (_, Err(cause)) => return fail(&cause),
    };
    let json = args.json;
    let state = args.place.file("state.db").ok();
    match &args.what {
        What::List(which) => conclude(look::list(&desk, which, json)),
        What::Show(which) => conclude(look::show(&desk, state.as_deref(), which, json)),
        What::Approve(asked) => {
            runtime.block_on(decide::approve(&desk, state.as_deref(), asked, json))
        }
        What::Reject(asked) => runtime.block_on(decide::reject(&desk, asked, json)),
        What::Grant(asked) => conclude(runtime.block_on(allow::grant(&desk, asked, json))),
        What::Grants => conclude(allow::list(&desk, json)),
        What::Ungrant { grant } => conclude(runtime.block_on(allow::end(&desk, grant, json))),
    }
}
