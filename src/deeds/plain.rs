//! Text that others wrote, made fit for a terminal.

use std::fmt::Write as _;

/// The text with nothing in it that a terminal would obey or that turns the direction of writing
/// (CVE-2021-42574): any program, container or client may have written it.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        let turns = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if letter.is_control() || turns {
            // Writing into a string does not fail.
            let _ = write!(plain, "{}", letter.escape_unicode());
        } else {
            plain.push(letter);
        }
    }
    plain
}
