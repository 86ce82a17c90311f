//! Shows text for a person's decision: nothing in it is hidden, and two different texts never look the same.

use std::fmt::Write as _;

use unicode_script::{Script, UnicodeScript as _};
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _, skeleton};

/// The most consecutive blanks that are shown as they are, between two other characters of a line.
const MAX_GAP: usize = 3;

/// The most blanks that are shown as they are at the beginning of a line.
const MAX_INDENT: usize = 16;

/// The most consecutive line feeds that are shown as they are: one empty line between two others.
const MAX_LINE_FEEDS: usize = 2;

/// A text with more characters or lines than this is shown with their number.
const LONG_CHARACTERS: usize = 200;
const LONG_LINES: usize = 3;

/// Returns the text on one line.
///
/// Printable ASCII is unchanged, and so are letters and digits of one script that do not look like ASCII.
/// Everything else becomes a mark: `\u{200b}` for one character, `\u{200b, 5 times}` for a run, `\u{12 blanks}`,
/// `\u{tab}`. A backslash that would begin a mark becomes `\u{5c}`, so the original can be recovered.
pub fn exact_line(text: &str) -> String {
    Writer::new(text, false).write()
}

/// Returns the text with its lines. Runs of empty lines become a mark such as `\u{40 empty lines}`; the rest is as
/// in [`exact_line`].
pub fn exact_lines(text: &str) -> String {
    Writer::new(text, true).write()
}

/// Returns notes on a text: its length if it is long, and characters other than ASCII and Latin letters. Empty for
/// a short text of plain characters.
pub fn text_notes(text: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let (characters, lines) = (text.chars().count(), text.lines().count());
    if characters > LONG_CHARACTERS || lines > LONG_LINES {
        let lines = match lines {
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        };
        notes.push(format!("{characters} characters, {lines}"));
    }
    let is_unusual = |c: &char| !c.is_ascii_graphic() && !matches!(c, ' ' | '\n' | '\t');
    let unusual = |text: &str| text.chars().filter(is_unusual).count();
    if unusual(text) == 0 {
        return notes;
    }
    let shown = exact_lines(text);
    // A mark consists of ASCII characters.
    if unusual(&shown) < unusual(text) {
        notes.push(
            "contains characters that are invisible or look like others; each is shown as \\u{...}"
                .to_owned(),
        );
    }
    let is_foreign = |c: char| !c.is_ascii() && c.script() != Script::Latin;
    if shown.chars().any(is_foreign) {
        notes.push("contains letters that are not Latin".to_owned());
    }
    notes
}

/// Writes one text.
struct Writer {
    characters: Vec<char>,
    keeps_lines: bool,
    out: String,
}

impl Writer {
    fn new(text: &str, keeps_lines: bool) -> Self {
        Self {
            characters: text.chars().collect(),
            keeps_lines,
            out: String::with_capacity(text.len()),
        }
    }

    fn write(mut self) -> String {
        let characters = std::mem::take(&mut self.characters);
        let mut rest = characters.as_slice();
        while let Some(first) = rest.first().copied() {
            let length = if is_of_word(first) {
                rest.iter().take_while(|c| is_of_word(**c)).count()
            } else {
                rest.iter().take_while(|c| **c == first).count()
            };
            let (run, after) = rest.split_at(length);
            match first {
                '\n' if self.keeps_lines => self.line_feeds(length),
                ' ' => self.blanks(length, after.first()),
                '\t' if length == 1 => self.out.push_str("\\u{tab}"),
                '\t' => self.mark(format_args!("{length} tabs")),
                '\\' => self.backslashes(length, after),
                _ if is_of_word(first) => self.word(run),
                _ if first.is_ascii_graphic() => self.out.extend(run),
                _ => self.write_invisible(first, length),
            }
            rest = after;
        }
        self.out
    }

    /// Writing to a string cannot fail.
    fn mark(&mut self, what: std::fmt::Arguments<'_>) {
        let _ = write!(self.out, "\\u{{{what}}}");
    }

    fn write_invisible(&mut self, character: char, times: usize) {
        let code = u32::from(character);
        match times {
            1 => self.mark(format_args!("{code:x}")),
            _ => self.mark(format_args!("{code:x}, {times} times")),
        }
    }

    fn line_feeds(&mut self, count: usize) {
        if count <= MAX_LINE_FEEDS {
            self.out.extend(std::iter::repeat_n('\n', count));
        } else {
            self.out.push('\n');
            self.mark(format_args!("{} empty lines", count - 1));
            self.out.push('\n');
        }
    }

    /// Blanks at the end of the text or of a line are invisible.
    fn blanks(&mut self, count: usize, after: Option<&char>) {
        let at_end = after.is_none_or(|c| self.keeps_lines && *c == '\n');
        let most = match self.out.chars().next_back() {
            None => 0,
            Some('\n') if self.keeps_lines => MAX_INDENT,
            Some(_) => MAX_GAP,
        };
        if !at_end && count <= most {
            self.out.extend(std::iter::repeat_n(' ', count));
        } else if count == 1 {
            self.mark(format_args!("1 blank"));
        } else {
            self.mark(format_args!("{count} blanks"));
        }
    }

    /// Only the last backslash can begin something that looks like a mark.
    fn backslashes(&mut self, count: usize, after: &[char]) {
        if after.starts_with(&['u', '{']) {
            self.out.extend(std::iter::repeat_n('\\', count - 1));
            self.mark(format_args!("5c"));
        } else {
            self.out.extend(std::iter::repeat_n('\\', count));
        }
    }

    /// A non-Latin letter is shown only in a word of one script that cannot be mistaken for an ASCII word.
    fn word(&mut self, word: &[char]) {
        if word.iter().all(char::is_ascii) {
            self.out.extend(word);
            return;
        }
        let text: String = word.iter().collect();
        let is_its_own = text.as_str().is_single_script() && !is_like_ascii(&text);
        for character in word {
            let is_latin = character.script() == Script::Latin;
            let is_shown = match character {
                c if c.is_ascii() => true,
                c if !c.identifier_allowed() || !has_own_script(*c) => false,
                c if is_latin => !is_like_ascii(c.encode_utf8(&mut [0; 4])),
                _ => is_its_own,
            };
            if is_shown {
                self.out.push(*character);
            } else {
                self.write_invisible(*character, 1);
            }
        }
    }
}

/// Returns whether a character is a letter, a digit or a combining mark.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() && c.identifier_allowed()
}

/// Returns whether a text looks like ASCII, by the table of confusable characters (UTS #39, section 4).
fn is_like_ascii(text: &str) -> bool {
    skeleton(text).all(|c| c.is_ascii())
}

/// Returns whether a character belongs to a script that is written left to right.
fn has_own_script(c: char) -> bool {
    match c.script() {
        // Excluded: letters that are written right to left, and combining marks. A precomposed letter with an
        // accent looks the same as the letter and the mark.
        Script::Arabic | Script::Hebrew | Script::Thaana | Script::Inherited => false,
        _ => !c.script_extension().is_common(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sys::random_bytes;

    /// Recovers the original from the shown text.
    fn read(shown: &str) -> String {
        let mut text = String::new();
        let mut rest = shown;
        while let Some((before, after)) = rest.split_once("\\u{") {
            text.push_str(before);
            let (mark, after) = after.split_once('}').unwrap();
            let repeated = |count: &str, what: char| {
                std::iter::repeat_n(what, count.parse().unwrap()).collect::<String>()
            };
            let character = |code: &str| char::from_u32(u32::from_str_radix(code, 16).unwrap());
            text.push_str(&match mark.split_once(' ') {
                None if mark == "tab" => "\t".to_owned(),
                None => character(mark).unwrap().to_string(),
                Some((count, "blank" | "blanks")) => repeated(count, ' '),
                Some((count, "tabs")) => repeated(count, '\t'),
                // It has a line feed on either side.
                Some((count, "empty lines")) => repeated(count, '\n').split_off(1),
                Some((code, times)) => {
                    let count = times.strip_suffix(" times").unwrap();
                    repeated(count, character(code.trim_end_matches(',')).unwrap())
                }
            });
            rest = after;
        }
        text + rest
    }

    /// Pieces that are likely to collide when they are joined.
    const PIECES: &[&str] = &[
        "a",
        "u{",
        "\\",
        "\\u{",
        "\\u{5c}",
        "\\u{200b}",
        "}",
        " ",
        "    ",
        "\n",
        "\n\n\n",
        "\t",
        "\r",
        "\0",
        "\u{200b}",
        "\u{202e}",
        "\u{3164}",
        "\u{e0041}",
        "\u{43e}",
        "\u{430}",
        "e\u{301}",
        "\u{e9}",
        "\u{131}",
        "\u{5d0}",
        "0",
        "\\u{3 blanks}",
        "\\u{2 empty lines}",
        "3 blanks",
        "\u{2028}",
        "\u{ad}",
        "\u{1f600}",
        "\u{4e2d}",
        "tab",
        "x",
    ];

    fn random_text() -> String {
        let bytes: [u8; 24] = random_bytes().unwrap();
        let count = usize::from(bytes[0] % 23);
        let pick = |byte: &u8| PIECES[usize::from(*byte) % PIECES.len()];
        bytes.iter().skip(1).take(count).map(pick).collect()
    }

    #[test]
    fn two_different_texts_never_look_the_same() {
        let mut lines = BTreeMap::new();
        let mut single = BTreeMap::new();
        for _ in 0..20_000 {
            let text = random_text();
            let (many, one) = (exact_lines(&text), exact_line(&text));
            assert_eq!(read(&many), text, "{many}");
            assert_eq!(read(&one), text, "{one}");
            assert!(!one.contains('\n') && !one.contains("    "), "{one}");
            assert_eq!(lines.entry(many).or_insert_with(|| text.clone()), &text);
            assert_eq!(single.entry(one).or_insert_with(|| text.clone()), &text);
        }
    }

    #[test]
    fn nothing_is_shown_that_cannot_be_seen_or_looks_like_something_else() {
        for (text, shown) in [
            ("/srv/\u{200b}backup", r"/srv/\u{200b}backup"),
            ("get.d\u{43e}cker.com", r"get.d\u{43e}cker.com"),
            ("\u{440}\u{430}\u{441}", r"\u{440}\u{430}\u{441}"),
            ("rm\u{ad}\u{2060}\u{feff}", r"rm\u{ad}\u{2060}\u{feff}"),
            ("a\u{3164}b\u{115f}", r"a\u{3164}b\u{115f}"),
            ("\u{e0041}\u{e0041}", r"\u{e0041, 2 times}"),
            ("x\u{202e}y\u{2066}z", r"x\u{202e}y\u{2066}z"),
            ("\u{1b}[2J\u{7}\r", r"\u{1b}[2J\u{7}\u{d}"),
            ("a\u{2028}b\u{85}c", r"a\u{2028}b\u{85}c"),
            ("1 \u{5d0} 2", r"1 \u{5d0} 2"),
            ("e\u{301}", r"e\u{301}"),
            ("\u{ff52}\u{ff4d}", r"\u{ff52}\u{ff4d}"),
            ("a\u{2044}b\u{37e}c", r"a\u{2044}b\u{37e}c"),
            ("\u{1d41}", r"\u{1d41}"),
        ] {
            assert_eq!(exact_line(text), shown);
            assert_eq!(exact_lines(text), shown);
        }
    }

    #[test]
    fn readable_text_stays_as_it_is() {
        for text in [
            r"grep 'a\.b' x; echo $HOME > /tmp/x && { true; } # [ok]",
            "Küche, Straße, naïve, Łódź",
            "резервная копия",
            "バックアップ 備份",
            "if x:\n    y = 1\n\n    z = 2\n",
        ] {
            assert_eq!(exact_lines(text), text);
        }
    }

    #[test]
    fn gaps_that_push_words_out_of_sight_become_a_number() {
        let far = format!("echo ok{}; id{}", " ".repeat(400), " ");
        assert_eq!(exact_line(&far), r"echo ok\u{400 blanks}; id\u{1 blank}");
        let below = format!("echo ok{}; id", "\n".repeat(4000));
        assert_eq!(exact_lines(&below), "echo ok\n\\u{3999 empty lines}\n; id");
        assert_eq!(exact_line("a\n\nb"), r"a\u{a, 2 times}b");
        assert_eq!(exact_lines("a \n\tb"), "a\\u{1 blank}\n\\u{tab}b");
    }

    #[test]
    fn a_reader_is_told_of_length_and_of_what_is_not_latin() {
        assert!(text_notes("systemctl restart nginx\n\tÄ").is_empty());
        let long = "x".repeat(201);
        assert_eq!(text_notes(&long), ["201 characters, 1 line"]);
        assert_eq!(text_notes("a\nb\nc\nd"), ["7 characters, 4 lines"]);
        let hidden = text_notes("rm\u{200b}");
        assert!(
            hidden.len() == 1 && hidden[0].contains("invisible"),
            "{hidden:?}"
        );
        let foreign = text_notes("копия");
        assert!(
            foreign.len() == 1 && foreign[0].contains("not Latin"),
            "{foreign:?}"
        );
    }
}
