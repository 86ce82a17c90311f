//! Text and timestamps of an engine's answer, made safe to show.

use gatewren_base::sys::{moment_ms, sanitize, shorten};

/// The most characters of a short text of an answer, such as a user or the name of a network; a longer one is cut.
pub(super) const MAX_TEXT_CHARS: usize = 256;
/// The most characters of a path; Linux has none that is longer (`PATH_MAX`).
pub(super) const MAX_PATH_CHARS: usize = 4096;

/// Returns text of an answer on one line, of at most `most` characters before control characters are escaped.
pub(super) fn plain(text: &str, most: usize) -> String {
    sanitize(&shorten(text, most))
}

/// Returns a short text of an answer; empty if it is missing.
pub(super) fn short_text(text: Option<&str>) -> String {
    plain(text.unwrap_or_default(), MAX_TEXT_CHARS)
}

/// Returns the milliseconds since 1970 of an RFC 3339 timestamp; `None` if it is missing, or is the year 1, with
/// which the engines mean "never".
pub(super) fn time_ms(text: Option<&str>) -> Option<u64> {
    moment_ms(text?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_year_1_means_never() {
        assert_eq!(time_ms(Some("0001-01-01T00:00:00Z")), None);
        assert_eq!(time_ms(Some("")), None);
        assert_eq!(time_ms(None), None);
        let time = time_ms(Some("2026-11-26T01:39:32.674452944+01:00"));
        assert_eq!(time, Some(1_795_653_572_674));
    }

    #[test]
    fn text_is_cut_and_has_no_control_characters() {
        assert_eq!(plain("a\nb\u{202e}", 10), r"a\u{a}b\u{202e}");
        assert_eq!(plain("abcdef", 3), "ab…");
        assert_eq!(short_text(None), "");
    }
}
