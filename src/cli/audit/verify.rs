//! `gatewren audit verify`: is the record of calls as it was written?

use std::process::ExitCode;

use serde_json::json;

use super::super::say::{conclude, fail};
use crate::vault::{AuditReader, Chain, Fault};

/// A row is not as it was written; 1 means that nobody can say, 2 a wrong command line.
const BROKEN: u8 = 3;

/// Exits with 0 when every row is as it was written, with 3 when one is not, with 1 when nobody can say.
pub fn run(audit: &AuditReader, json: bool) -> ExitCode {
    let chain = match audit.verify() {
        Ok(chain) => chain,
        Err(error) => return fail(&error),
    };
    let told = conclude(Ok(if json { as_json(&chain) } else { words(&chain) }));
    match chain {
        Chain::Broken { .. } => ExitCode::from(BROKEN),
        Chain::Intact { .. } => told,
    }
}

fn as_json(chain: &Chain) -> String {
    match chain {
        Chain::Intact { rows, trimmed } => {
            json!({ "intact": true, "rows": rows, "trimmed": trimmed }).to_string()
        }
        Chain::Broken { seq, fault } => {
            json!({ "intact": false, "row": seq, "fault": fault.as_str() }).to_string()
        }
    }
}

fn words(chain: &Chain) -> String {
    match chain {
        Chain::Intact { rows, trimmed: 0 } => format!("all {rows} rows are as they were written"),
        Chain::Intact { rows, trimmed } => format!(
            "all {rows} rows are as they were written, and follow on the {trimmed} that were trimmed"
        ),
        Chain::Broken {
            seq,
            fault: Fault::Checkpoint,
        } => format!(
            "what says that rows were trimmed up to row {seq} is not what was written: nobody knows what \
             stood there"
        ),
        Chain::Broken { seq, fault } => {
            let fault = fault.as_str();
            format!("row {seq} is {fault}: rows from here on prove nothing")
        }
    }
}
