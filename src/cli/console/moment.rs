//! Times: relative for a person at a terminal, RFC 3339 for a program.

use super::style::is_read_by_person;
use gatewren_base::sys::{moment_ms, now_ms, rfc3339};

/// The units of a time span with their milliseconds, the longest first.
const UNITS: [(&str, u64); 4] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("min", 60_000),
    ("s", 1_000),
];

/// A time in milliseconds since 1970.
pub fn moment(ms: u64) -> String {
    if is_read_by_person() {
        relative(ms, now_ms())
    } else {
        rfc3339(ms)
    }
}

/// A time in RFC 3339; another text is returned as it is.
pub fn moment_of(text: &str) -> String {
    moment_ms(text).map_or_else(|| text.to_owned(), moment)
}

/// The same behind the word that an absolute time needs.
pub fn at_moment(ms: u64) -> String {
    let at = if is_read_by_person() { "" } else { "at " };
    format!("{at}{}", moment(ms))
}

fn relative(ms: u64, now: u64) -> String {
    let span = now.abs_diff(ms);
    let unit = UNITS.iter().find(|(_, unit)| span >= *unit);
    let Some((name, unit)) = unit else {
        return "now".to_owned();
    };
    let count = span / unit;
    if ms > now {
        format!("in {count} {name}")
    } else {
        format!("{count} {name} ago")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_its_largest_unit() {
        let now = 1_000_000_000;
        for (ms, words) in [
            (now, "now"),
            (now - 59_999, "59 s ago"),
            (now - 120_000, "2 min ago"),
            (now - 7_200_000, "2 h ago"),
            (now + 3 * 86_400_000, "in 3 d"),
        ] {
            assert_eq!(relative(ms, now), words);
        }
        // Standard output of a test is no terminal.
        assert_eq!(moment_of("-"), "-");
    }
}
