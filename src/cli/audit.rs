//! `gatewren audit`: is the record of calls as it was written?

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::{
    place::Place,
    say::{conclude, fail},
};
use crate::vault::{Chain, Fault};

/// Check the record of every call.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,

    #[command(flatten)]
    place: Place,

    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Find the first row that was altered, moved or taken away
    Verify,
}

/// A row is not as it was written.
const BROKEN: u8 = 2;

/// Exits with 0 when every row is as it was written, with 2 when one is not, with 1 when nobody can say.
pub fn run(args: &Args) -> ExitCode {
    let What::Verify = args.what;
    let chain = args
        .place
        .vault()
        .and_then(|vault| vault.audit().verify().map_err(|e| e.to_string()));
    match chain {
        Err(words) => fail(&words),
        Ok(Chain::Intact { rows }) => conclude(Ok(if args.json {
            json!({ "intact": true, "rows": rows }).to_string()
        } else {
            format!("all {rows} rows are as they were written")
        })),
        Ok(Chain::Broken { seq, fault }) => {
            let what = match fault {
                Fault::Missing => "missing",
                Fault::Misplaced => "misplaced",
                Fault::Altered => "altered",
            };
            let text = if args.json {
                json!({ "intact": false, "row": seq, "fault": what }).to_string()
            } else {
                format!("row {seq} is {what}: rows from here on prove nothing")
            };
            conclude(Ok(text));
            ExitCode::from(BROKEN)
        }
    }
}
