//! `gatewren audit export`: prints every row with its hashes, for others to store and verify.

use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use serde_json::Value;

use super::super::console::output::fail;
use gatewren_gate::owner_actions::export_header;
use gatewren_store::vault::{AuditLine, AuditReader};

/// Prints what the first row follows on, then the rows. Exits with 1 if they cannot be read, or if the reader
/// closed the pipe.
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
        // The reader closed the pipe.
        (Ok(()), Err(_)) => ExitCode::FAILURE,
    }
}
