//! Points in time as a person types them: a date, a time, or how long ago.

use std::str::FromStr;

use gatewren_base::sys::{moment_ms, now_ms};

/// A point in time in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanTimestamp(pub i64);

/// Seconds of each unit.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

impl FromStr for HumanTimestamp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ms = parse_ago(text).or_else(|| moment_ms(text)).ok_or_else(|| {
            "invalid time; use 2h, 7d, 2026-07-28 or 2026-07-28T09:30:00Z".to_owned()
        })?;
        Ok(Self(i64::try_from(ms).unwrap_or(i64::MAX)))
    }
}

fn parse_ago(text: &str) -> Option<u64> {
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(*unit))?;
    let count: u64 = text.strip_suffix(unit.0)?.parse().ok()?;
    let ms = count.checked_mul(unit.1)?.checked_mul(1000)?;
    Some(now_ms().saturating_sub(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_how_long_ago() {
        let moment = |text: &str| text.parse::<HumanTimestamp>().map(|moment| moment.0);
        assert_eq!(moment("1970-01-02"), Ok(86_400_000));
        assert_eq!(moment("1970-01-01T00:00:01Z"), Ok(1_000));
        assert_eq!(moment("1970-01-01T01:00:01.5+01:00"), Ok(1_500));
        let now = i64::try_from(now_ms()).unwrap();
        let ago = now - moment("2h").unwrap();
        assert!((0..=7_200_000).contains(&ago) && ago > 7_000_000, "{ago}");
        for text in [
            "",
            "h",
            "2",
            "2x",
            "yesterday",
            "-2h",
            "2026-13-01",
            "99999999999999999999d",
        ] {
            assert!(moment(text).is_err(), "{text}");
        }
    }
}
