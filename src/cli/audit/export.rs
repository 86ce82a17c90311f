//! `gatewren audit export`: every row with its hashes, for somebody else to keep and to verify.

use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use serde_json::Value;

use super::super::say::fail;
use crate::deeds::export_header;
use crate::vault::{AuditLine, AuditReader};

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
            AuditLine::Beginning(beginning) => export_header(&beginning),
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
