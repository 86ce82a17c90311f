//! How a command ends: words or JSON on standard output, an error on standard error.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Prints what a command found and says that it went well, or prints why it did not.
pub fn conclude(outcome: Result<String, String>) -> ExitCode {
    match outcome {
        // Not an empty line, where lines are what is read.
        Ok(text) if text.is_empty() => ExitCode::SUCCESS,
        Ok(text) if writeln!(io::stdout(), "{text}").is_ok() => ExitCode::SUCCESS,
        // Whoever read it has stopped reading.
        Ok(_) => ExitCode::FAILURE,
        Err(words) => fail(&words),
    }
}

/// Prints an error.
pub fn fail(words: &dyn Display) -> ExitCode {
    // Nothing better is left when even this cannot be written.
    let _ = writeln!(io::stderr(), "gatewren: {words}");
    ExitCode::FAILURE
}
