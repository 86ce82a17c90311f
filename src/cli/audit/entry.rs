//! The arguments of `gatewren audit`, and their dispatch to the subcommands.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::super::console::output::conclude;
use super::super::console::target::SubcommandArgs;
use super::anchors::{self, GatheredAnchors};
use super::{calls, export, verify};
use gatewren_store::vault::AuditReader;

/// The arguments of the command.
pub type AuditArgs = SubcommandArgs<AuditSubcommand>;

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum AuditSubcommand {
    /// List calls, the newest first
    List(calls::AuditListArgs),
    /// Show everything that is known about one call
    Show {
        /// The call's number, the reference of its request, or its id in the audit
        #[arg(value_name = "ID")]
        call: String,
        /// Show the exact arguments; asks for the owner's password, or reads the first line of standard input
        #[arg(long)]
        exact: bool,
    },
    /// Find the first row that was altered, moved or removed
    ///
    /// The chain of hashes proves that no row was altered, moved or removed. It cannot prove that the end was not
    /// cut off, or that the chain was not rewritten as a whole. For that, root compares it with the helper's
    /// journal, which has the newest row of each operation. Rows older than the journal and trimmed rows cannot
    /// be compared. Exits with 3 if a row is not as it was written, with 4 if the rows contradict the journal.
    Verify {
        /// Compare with this file instead of the journal: `journalctl -o json -u gatewren-helper`
        #[arg(long, value_name = "FILE")]
        anchors: Option<PathBuf>,
    },
    /// Print every row with its hashes, the oldest first, one JSON object a line
    Export {
        /// Only rows after this one, to continue an earlier export
        #[arg(long, value_name = "ROW")]
        after: Option<i64>,
    },
}

/// Runs the command. It changes nothing and needs no running server.
pub fn run(args: &AuditArgs) -> ExitCode {
    // First, because opening the vault drops root privileges, which reading the journal needs.
    let gathered = match &args.subcommand {
        AuditSubcommand::Verify {
            anchors: Some(file),
        } => anchors::of_file(file),
        AuditSubcommand::Verify { .. } if !args.place.is_standard() => Ok(
            GatheredAnchors::Nothing("give an export of the helper's log with --anchors"),
        ),
        AuditSubcommand::Verify { .. } => anchors::of_journal(),
        _ => Ok(GatheredAnchors::Nothing("")),
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
    match &args.subcommand {
        AuditSubcommand::List(which) => conclude(calls::list(&audit, which, args.json)),
        AuditSubcommand::Show { call, exact } => {
            conclude(calls::show(&audit, call, *exact, args.json))
        }
        AuditSubcommand::Verify { .. } => verify::run(&audit, &gathered, args.json),
        AuditSubcommand::Export { after } => export::run(&audit, *after),
    }
}
