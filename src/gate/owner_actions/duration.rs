//! Durations as a person types them: `30m`, `2h`, `7d`.

use std::str::FromStr;

/// The longest grant. A longer permission belongs in the agent's policy.
const MOST_S: u64 = 30 * 86_400;

/// Seconds of each unit.
const UNITS: [(char, u64); 4] = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// A duration in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HumanDuration(pub u64);

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = UNITS.iter().find_map(|(unit, seconds)| {
            let count: u64 = text.strip_suffix(*unit)?.parse().ok()?;
            count.checked_mul(*seconds)
        });
        let seconds = seconds.filter(|seconds| (1..=MOST_S).contains(seconds));
        seconds
            .map(|seconds| Self(seconds * 1_000))
            .ok_or_else(|| "invalid duration; use 1s to 30d, such as 30m or 2h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_holds_for_a_time_with_a_bound() {
        assert_eq!("2h".parse(), Ok(HumanDuration(7_200_000)));
        assert_eq!("30d".parse(), Ok(HumanDuration(MOST_S * 1_000)));
        for text in [
            "",
            "2",
            "h",
            "0s",
            "31d",
            "-1h",
            "2 h",
            "99999999999999999999d",
        ] {
            assert!(text.parse::<HumanDuration>().is_err(), "{text}");
        }
    }
}
