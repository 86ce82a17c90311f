//! What a person types after `gatewren state`, and where it goes.

use std::process::ExitCode;

use clap::{Subcommand, ValueHint};

use super::super::{place::Place, say::conclude};
use super::{blame, changes, check, document, patch, watch};
use crate::state::Pointer;

/// Read, change and follow the document that describes the box.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print JSON: one object, or one a line for what may be many
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print what stands at a JSON Pointer
    Get(Where),
    /// Apply a JSON Patch (RFC 6902: add, remove, replace, test) from standard input as one revision
    Patch(patch::Args),
    /// Print each revision that touches a place, as it comes, until Ctrl-C
    Watch {
        #[command(flatten)]
        place: Where,
        /// Begin after this revision and not with the next one
        #[arg(long, value_name = "REVISION")]
        since: Option<u64>,
    },
    /// Print the revisions that touch a place, the newest first
    Log {
        #[command(flatten)]
        place: Where,
        #[command(flatten)]
        which: changes::Which,
    },
    /// Say which revision wrote each value last, when, and on whose behalf
    Blame(Where),
    /// Print what stood at a JSON Pointer at a revision
    At {
        /// Which revision
        revision: u64,
        #[command(flatten)]
        place: Where,
    },
    /// Say whether the database is as its rules say; nothing is changed
    Check,
    /// Print the whole document with its revision as one JSON object
    Export {
        /// As it was at this revision
        #[arg(long, value_name = "REVISION")]
        at: Option<u64>,
        /// Print the log in its place: every kept revision, the oldest first, a JSON object a line
        #[arg(long, conflicts_with = "at")]
        log: bool,
    },
}

/// A place in the document.
#[derive(Debug, clap::Args)]
pub struct Where {
    /// Where, such as /public/packageData; everything when absent
    #[arg(default_value = "", value_name = "POINTER", value_hint = ValueHint::Other)]
    pub pointer: Pointer,
}

/// Runs the command; 1 when it could not be done.
pub fn run(args: &Args) -> ExitCode {
    let Args { what, place, json } = args;
    let (file, json) = match place.file("state.db") {
        Ok(file) => (file, *json),
        Err(words) => return conclude(Err(words)),
    };
    match what {
        What::Get(place) => conclude(document::get(&file, &place.pointer, json)),
        What::At { revision, place } => {
            conclude(document::at(&file, *revision, &place.pointer, json))
        }
        What::Export { at, log: false } => conclude(document::export(&file, *at)),
        What::Export { log: true, .. } => changes::export(&file),
        What::Patch(args) => conclude(patch::run(&file, args, json)),
        What::Watch { place, since } => watch::run(&file, &place.pointer, *since, json),
        What::Log { place, which } => conclude(changes::log(&file, &place.pointer, which, json)),
        What::Blame(place) => conclude(blame::run(&file, &place.pointer, json)),
        What::Check => check::run(&file, json),
    }
}
