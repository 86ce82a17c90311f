//! What a person types after `gatewren audit`, and where it goes.

use std::process::ExitCode;

use clap::Subcommand;

use super::super::{place::Place, say::conclude};
use super::{calls, export, verify};
use crate::vault::AuditReader;

/// Read and check the record of every call.
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
    /// List calls, the newest first
    List(calls::Which),
    /// Show all that is known of one call
    Show {
        /// Its number, the reference of its request, or its id in the audit
        #[arg(value_name = "ID")]
        call: String,
    },
    /// Find the first row that was altered, moved or taken away
    Verify,
    /// Print every row with its hashes, the oldest first, a JSON object a line
    Export {
        /// Only those after this row, to go on from an earlier export
        #[arg(long, value_name = "ROW")]
        after: Option<i64>,
    },
}

/// Runs the command; nothing is changed, and no server need run.
pub fn run(args: &Args) -> ExitCode {
    let file = args.place.file("vault.db");
    let opened = file.and_then(|file| AuditReader::open(&file).map_err(|e| e.to_string()));
    let audit = match opened {
        Ok(audit) => audit,
        Err(words) => return conclude(Err(words)),
    };
    match &args.what {
        What::List(which) => conclude(calls::list(&audit, which, args.json)),
        What::Show { call } => conclude(calls::show(&audit, call, args.json)),
        What::Verify => verify::run(&audit, args.json),
        What::Export { after } => export::run(&audit, *after),
    }
}
