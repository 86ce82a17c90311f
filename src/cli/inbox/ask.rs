//! Asks the owner on a terminal before something is decided that was not named one by one.

use std::io::{self, BufRead as _, Read as _, Write as _};

use crate::sys::is_asked;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 256;

/// Shows a text and a question on standard error, and waits for an answer on standard input. Only `yes` is a yes.
///
/// # Errors
/// Words for the owner: the answer was another one, or standard input is no terminal; `otherwise` says what to do then.
pub fn ask_yes(text: &str, question: &str, otherwise: &str) -> Result<(), String> {
    if !is_asked() {
        return Err(format!(
            "nothing was done: standard input is not a terminal; {otherwise}"
        ));
    }
    let unanswered = || "nothing was done: the question was not answered".to_owned();
    // Standard output may be read by a program.
    write!(io::stderr(), "{text}\n{question} Answer yes or no: ").map_err(|_| unanswered())?;
    let mut line = String::new();
    let mut input = io::stdin().lock().take(MAX_ANSWER_BYTES);
    match input.read_line(&mut line) {
        Ok(read) if read > 0 && line.trim() == "yes" => Ok(()),
        Ok(read) if read > 0 => Err("nothing was done: the answer was not yes".to_owned()),
        _ => Err(unanswered()),
    }
}
