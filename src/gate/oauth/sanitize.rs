//! Sanitizes text of programs for display next to our own.

use gatewren_base::sys::is_unseen;

/// Returns the text as one line of at most this many characters, without invisible characters and without
/// characters that change the direction of writing (CVE-2021-42574).
pub fn inert(text: &str, most: usize) -> String {
    let seen = |letter: &char| !is_unseen(*letter) && !letter.is_control();
    let words: String = text.chars().filter(seen).take(most).collect();
    words.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_not_shown() {
        assert_eq!(inert(" Chat\u{202e}\u{200b}\n\u{7} x ", 64), "Chat x");
        assert_eq!(inert(&"ä".repeat(65), 64), "ä".repeat(64));
        assert_eq!(inert("\u{feff}\r", 64), "");
    }
}
