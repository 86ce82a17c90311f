//! A time argument: RFC 3339, or a duration before now.

use schemars::JsonSchema;
use serde::Deserialize;

use gatewren_base::sys::{moment_ms, now_ms};

/// Units with their milliseconds.
const UNITS: [(&str, u64); 6] = [
    ("min", 60_000),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
    ("w", 7 * 86_400_000),
];

/// A point in time, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String", description = "", extend("minLength" = 2, "maxLength" = 64))]
pub struct LogMoment(u64);

impl LogMoment {
    /// Returns the milliseconds since 1970.
    pub fn ms(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for LogMoment {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        moment_ms(&text)
            .or_else(|| now_ms().checked_sub(span_ms(&text)?))
            .map(Self)
            .ok_or("a date, a time such as 2026-07-28T09:30:00Z, or how long ago, such as 30min, 2h or 7d")
    }
}

/// Parses a duration such as `2h`; `-2h` is accepted too.
fn span_ms(text: &str) -> Option<u64> {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (unit, ms) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    number.checked_mul(*ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_time_or_so_long_ago() {
        let read = |text: &str| LogMoment::try_from(text.to_owned()).map(LogMoment::ms);
        assert_eq!(read("2026-07-28T09:30:00Z"), Ok(1_785_231_000_000));
        assert_eq!(read("2026-07-28"), Ok(1_785_196_800_000));
        for (text, ms) in [
            ("30min", 1_800_000),
            ("90s", 90_000),
            ("2h", 7_200_000),
            ("-2h", 7_200_000),
            ("7d", 604_800_000),
        ] {
            assert_eq!(span_ms(text), Some(ms), "{text}");
            assert!(read(text).unwrap() <= now_ms());
        }
        for bad in [
            "",
            "h",
            "yesterday",
            "2 fortnights",
            "-",
            "99999999999999999999d",
            "@1",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
