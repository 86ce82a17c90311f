//! How a command ends: text or JSON on standard output, an error on standard error.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Prints the result of a command, or its error; returns the exit code.
pub fn conclude(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        // No empty line, for readers that parse lines.
        Ok(text) if text.is_empty() => ExitCode::SUCCESS,
        Ok(text) if writeln!(io::stdout(), "{text}").is_ok() => ExitCode::SUCCESS,
        // The reader closed the pipe.
        Ok(_) => ExitCode::FAILURE,
        Err(words) => fail(&words),
    }
}

/// Prints an error.
pub fn fail(words: &dyn Display) -> ExitCode {
    // If even this write fails, there is no other way to report it.
    let _ = writeln!(io::stderr(), "gatewren: {words}");
    ExitCode::FAILURE
}
