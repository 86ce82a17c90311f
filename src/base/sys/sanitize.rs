//! Neutralises control characters, so that a terminal shows them instead of obeying them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces control characters with their names, so that text that is shown to a person cannot move the cursor,
/// clear the screen or hide text. Line feeds and tabs stay; a carriage return before a line feed is removed. Marks
/// that change the direction of writing count as control characters (CVE-2021-42574).
pub fn neutralise(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\u{1b}' => out.push_str("^["),
            c if is_hostile(c) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "<U+{:04X}>", u32::from(c));
            }
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Returns whether a terminal or another viewer might obey this character instead of showing it.
pub fn is_hostile(c: char) -> bool {
    let control = c.is_control() && c != '\n' && c != '\t';
    control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character has no visible width, changes how others are shown, or ends a line. These are the
/// code points with the Unicode property `Default_Ignorable_Code_Point`, and the separators of lines and
/// paragraphs.
pub fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_not_copied() {
        assert!(matches!(neutralise("a\tb\nä €"), Cow::Borrowed(_)));
    }

    #[test]
    fn t10_controls_become_visible() {
        assert_eq!(neutralise("\u{1b}[31mred\u{7}"), "^[[31mred<U+0007>");
        assert_eq!(neutralise("a\r\nb\rc"), "a\nb<U+000D>c");
        assert_eq!(
            neutralise("x\u{202e}y\u{9b}z\0"),
            "x<U+202E>y<U+009B>z<U+0000>"
        );
    }
}
