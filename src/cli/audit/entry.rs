//! What a person types after `gatewren audit`, and where it goes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::super::{place::Place, say::conclude};
use super::anchors::{self, Gathered};
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
        /// Open its exact arguments with the owner's password: asked for, or the first line of standard input
        #[arg(long)]
        exact: bool,
    },
    /// Find the first row that was altered, moved or taken away
    ///
    /// The chain of hashes proves that no row was altered, moved or removed. It cannot prove that the end was not cut
    /// off and that the chain was not rewritten as a whole. For that, root compares it with the helper's journal, which
    /// has the newest row of each operation. Rows older than the journal and trimmed rows cannot be compared. Exits with
    /// 3 when a row is not as it was written, with 4 when the rows contradict the journal.
    Verify {
        /// Compare with this file in place of the journal: `journalctl -o json -u gatewren-helper`
        #[arg(long, value_name = "FILE")]
        anchors: Option<PathBuf>,
    },
    /// Print every row with its hashes, the oldest first, a JSON object a line
    Export {
        /// Only those after this row, to go on from an earlier export
        #[arg(long, value_name = "ROW")]
        after: Option<i64>,
    },
}

/// Runs the command; nothing is changed, and no server need run.
pub fn run(args: &Args) -> ExitCode {
    // First: opening the vault gives up the rights of root, which the journal needs.
    let gathered = match &args.what {
        What::Verify {
            anchors: Some(file),
        } => anchors::of_file(file),
        What::Verify { .. } if !args.place.is_standard() => Ok(Gathered::Nothing(
            "name an export of the helper's log with --anchors",
        )),
        What::Verify { .. } => anchors::of_journal(),
        _ => Ok(Gathered::Nothing("")),
    };
    let gathered = match gathered {
        Ok(gathered) => gathered,
        Err(words) => return conclude(Err(words)),
    };
    let file = args.place.file("vault.db");
    let opened = file.and_then(|file| AuditReader::open(&file).map_err(|e| e.to_string()));
    let audit = match opened {
        Ok(audit) => audit,
        Err(words) => return conclude(Err(words)),
    };
    match &args.what {
        What::List(which) => conclude(calls::list(&audit, which, args.json)),
        What::Show { call, exact } => conclude(calls::show(&audit, call, *exact, args.json)),
        What::Verify { .. } => verify::run(&audit, &gathered, args.json),
        What::Export { after } => export::run(&audit, *after),
    }
}
