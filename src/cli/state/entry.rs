//! The arguments of `gatewren state`, and their dispatch to the subcommands.

use std::process::ExitCode;

use clap::{Subcommand, ValueHint};

use super::super::console::output::conclude;
use super::super::console::target::SubcommandArgs;
use super::{blame, changes, check, document, patch, watch};
use gatewren_store::state::Pointer;

/// The arguments of the command.
pub type StateArgs = SubcommandArgs<StateSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum StateSubcommand {
    /// Print the value at a JSON Pointer
    Get(StatePathArgs),
    /// Apply a JSON Patch (RFC 6902: add, remove, replace, test) from standard input as one revision
    Patch(patch::StatePatchArgs),
    /// Print each new revision that touches a path, until Ctrl-C
    Watch {
        #[command(flatten)]
        place: StatePathArgs,
        /// Start after this revision instead of the current one
        #[arg(long, value_name = "REVISION")]
        since: Option<u64>,
    },
    /// Print the revisions that touch a path, the newest first
    Log {
        #[command(flatten)]
        place: StatePathArgs,
        #[command(flatten)]
        which: changes::StateLogArgs,
    },
    /// Show which revision wrote each value last, when, and on whose behalf
    Blame(StatePathArgs),
    /// Print the value at a JSON Pointer at a revision
    At {
        /// The revision
        revision: u64,
        #[command(flatten)]
        place: StatePathArgs,
    },
    /// Check that the database follows its rules; nothing is changed
    Check,
    /// Print the whole document with its revision as one JSON object
    Export {
        /// Print it as of this revision
        #[arg(long, value_name = "REVISION")]
        at: Option<u64>,
        /// Print the log instead: every stored revision, the oldest first, one JSON object a line
        #[arg(long, conflicts_with = "at")]
        log: bool,
    },
}

/// A path in the document.
#[derive(Debug, clap::Args)]
pub struct StatePathArgs {
    /// The path, such as /public/packageData; the whole document if absent
    #[arg(default_value = "", value_name = "POINTER", value_hint = ValueHint::Other)]
    pub pointer: Pointer,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &StateArgs) -> ExitCode {
    let StateArgs {
        subcommand,
        place,
        json,
    } = args;
    let (file, json) = match place.file("state.db") {
        Ok(file) => (file, *json),
        Err(words) => return conclude(Err(words)),
    };
    match subcommand {
        StateSubcommand::Get(place) => conclude(document::get(&file, &place.pointer, json)),
        StateSubcommand::At { revision, place } => {
            conclude(document::at(&file, *revision, &place.pointer, json))
        }
        StateSubcommand::Export { at, log: false } => conclude(document::export(&file, *at)),
        StateSubcommand::Export { log: true, .. } => changes::export(&file),
        StateSubcommand::Patch(args) => conclude(patch::run(&file, args, json)),
        StateSubcommand::Watch { place, since } => watch::run(&file, &place.pointer, *since, json),
        StateSubcommand::Log { place, which } => {
            conclude(changes::log(&file, &place.pointer, which, json))
        }
        StateSubcommand::Blame(place) => conclude(blame::run(&file, &place.pointer, json)),
        StateSubcommand::Check => check::run(&file, json),
    }
}
