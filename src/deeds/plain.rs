//! Text that others wrote, made fit for a terminal.

use std::fmt::Write as _;

use crate::sys::is_unseen;

/// The text on one line, without a character that a terminal obeys, that turns the direction of writing (CVE-2021-42574)
/// or that cannot be seen. It is for reading only: text that a person decides on goes through [`crate::sys::exact_line`].
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_unseen(letter) {
            // Writing into a string does not fail.
            let _ = write!(plain, "{}", letter.escape_unicode());
        } else {
            plain.push(letter);
        }
    }
    plain
}
