//! `gatewren audit export`: every row with its hashes, for somebody else to keep and to verify.

use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::super::say::fail;
use crate::vault::{AuditBeginning, AuditLine, AuditReader, hex};

/// Prints what the rows follow on, then the rows; ends with 1 when they cannot be read, or nobody reads them.
pub fn run(audit: &AuditReader, after: Option<i64>) -> ExitCode {
    let out = &mut BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let mut print = |value: &Value| {
        written = writeln!(out, "{value}");
        if written.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let read = audit.rows(after, |line| {
        print(&match line {
            AuditLine::Beginning(beginning) => header(&beginning),
            AuditLine::Row(row) => Value::Object(row),
        })
    });
    match (read, written.and_then(|()| out.flush())) {
        (Err(error), _) => fail(&error),
        (Ok(()), Ok(())) => ExitCode::SUCCESS,
        // Whoever read it has stopped reading.
        (Ok(()), Err(_)) => ExitCode::FAILURE,
    }
}

fn header(beginning: &AuditBeginning) -> Value {
    let trimmed = beginning.checkpoint.as_ref().map(|(checkpoint, sealed)| {
        json!({
            "through": checkpoint.through, "sha256": hex(&checkpoint.sha256), "rows": checkpoint.rows,
            "at_ms": checkpoint.at_ms, "call": checkpoint.call, "sealed": sealed,
        })
    });
    json!({
        "after": beginning.after, "sha256": hex(&beginning.sha256), "last": beginning.last,
        "trimmed": trimmed,
    })
}
