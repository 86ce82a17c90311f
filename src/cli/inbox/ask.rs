//! Asks the owner on a terminal to confirm a decision about items that were not named one by one.

use std::io::{self, BufRead as _, Read as _, Write as _};

use gatewren_base::sys::is_asked;

/// The maximum length of an answer, in bytes.
const MAX_ANSWER_BYTES: u64 = 256;

/// Prints a text and a question to standard error, and reads the answer from standard input. Only `yes` confirms.
///
/// # Errors
/// If the answer is not `yes`, or standard input is not a terminal; `otherwise` says what the owner can do
/// instead.
pub fn ask_yes(text: &str, question: &str, otherwise: &str) -> Result<(), String> {
    if !is_asked() {
        return Err(format!(
            "nothing was done: standard input is not a terminal; {otherwise}"
        ));
    }
    let unanswered = || "nothing was done: the question was not answered".to_owned();
    // Not to standard output, which a program may read.
    write!(io::stderr(), "{text}\n{question} Answer yes or no: ").map_err(|_| unanswered())?;
    let mut line = String::new();
    let mut input = io::stdin().lock().take(MAX_ANSWER_BYTES);
    match input.read_line(&mut line) {
        Ok(read) if read > 0 && line.trim() == "yes" => Ok(()),
        Ok(read) if read > 0 => Err("nothing was done: the answer was not yes".to_owned()),
        _ => Err(unanswered()),
    }
}
