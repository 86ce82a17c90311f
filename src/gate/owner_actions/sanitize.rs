//! Makes untrusted text safe for a terminal.

use std::fmt::Write as _;

use gatewren_base::sys::is_unseen;

/// Returns the text on one line, with control characters, characters that change the direction of text
/// (CVE-2021-42574) and invisible ones escaped. It is only for display: text that a person decides on goes through
/// [`gatewren_base::sys::exact_line`].
pub fn sanitize(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_unseen(letter) {
            // Writing to a `String` cannot fail.
            let _ = write!(plain, "{}", letter.escape_unicode());
        } else {
            plain.push(letter);
        }
    }
    plain
}
