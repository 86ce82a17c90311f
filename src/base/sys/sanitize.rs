//! Makes text of others safe to show: a terminal, a browser or a person must not be misled by it. Text that a person
//! decides on goes through `exact_text` instead.

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

/// Like [`neutralise`], but returns one line: the ends of lines, and tabs, become spaces.
pub fn neutralise_line(text: &str) -> String {
    let line = text.replace(['\n', '\r', '\t', '\u{2028}', '\u{2029}'], " ");
    neutralise(&line).into_owned()
}

/// Returns the text on one line, with control characters, characters that change the direction of text
/// (CVE-2021-42574) and invisible ones escaped.
pub fn sanitize(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() || is_invisible(letter) {
            plain.extend(letter.escape_unicode());
        } else {
            plain.push(letter);
        }
    }
    plain
}

/// Sanitizes each line of a text.
pub fn sanitize_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(sanitize).collect();
    lines.join("\n")
}

/// Returns the text as one line of at most `most` characters, without the characters that [`sanitize`] escapes.
pub fn plain_line(text: &str, most: usize) -> String {
    let seen = |letter: &char| !is_invisible(*letter) && !letter.is_control();
    let words: String = text.chars().filter(seen).take(most).collect();
    words.trim().to_owned()
}

/// Returns whether a terminal or another viewer might obey this character instead of showing it.
pub fn is_hostile(c: char) -> bool {
    let control = c.is_control() && c != '\n' && c != '\t';
    control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character has no visible width, changes how others are shown, or ends a line. These are the
/// code points with the Unicode property `Default_Ignorable_Code_Point`, and the separators of lines and
/// paragraphs.
fn is_invisible(c: char) -> bool {
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
        let line = neutralise_line("a\nMainPID=1\r\u{1b}[2J\u{2028}b");
        assert_eq!(line, "a MainPID=1 ^[[2J b");
    }

    #[test]
    fn what_cannot_be_seen_is_escaped_or_left_out() {
        assert_eq!(sanitize("a\nb\u{200b}\u{202e}"), r"a\u{a}b\u{200b}\u{202e}");
        assert_eq!(sanitize_lines("a\n\u{7}b\n"), "a\n\\u{7}b");
        assert_eq!(plain_line(" Chat\u{202e}\u{200b}\n\u{7} x ", 64), "Chat x");
        assert_eq!(plain_line(&"ä".repeat(65), 64), "ä".repeat(64));
        assert_eq!(plain_line("\u{feff}\r", 64), "");
    }
}
