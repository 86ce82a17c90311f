//! When a token ends, as a person types it: after how long, or a date.

use std::str::FromStr;

use crate::sys::{moment_ms, now_ms};

/// Milliseconds of each unit.
const UNITS: [(char, u64); 5] = [
    ('w', 7 * DAY_MS),
    ('d', DAY_MS),
    ('h', 3_600_000),
    ('m', 60_000),
    ('s', 1_000),
];

const DAY_MS: u64 = 86_400_000;

/// A later end is refused: it is a slip, or no end is meant.
const MOST_MS: u64 = 3_660 * DAY_MS;

/// A moment to come, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(pub u64);

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        from(text, now_ms())
    }
}

fn from(text: &str, now: u64) -> Result<Expiry, String> {
    let ms = after(text, now)
        .or_else(|| end_of_day(text))
        .or_else(|| moment_ms(text));
    let ms = ms.ok_or_else(|| {
        "write how long, such as 30d or 12h (units w, d, h, m, s), the last day, such as 2027-01-31, or a \
         time, such as 2027-01-31T18:00:00Z"
            .to_owned()
    })?;
    if ms <= now {
        return Err("that is over already".to_owned());
    }
    if ms - now > MOST_MS {
        return Err("that is more than ten years away; without it the token has no end".to_owned());
    }
    Ok(Expiry(ms))
}

fn after(text: &str, now: u64) -> Option<u64> {
    let (unit, factor) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    let count: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    now.checked_add(count.checked_mul(factor)?)
}

/// Whoever names a day means that the token is good on it, wherever on the globe they are but for hours.
fn end_of_day(text: &str) -> Option<u64> {
    let is_date = text.len() == "2026-07-28".len();
    let midnight = is_date.then(|| moment_ms(text)).flatten()?;
    midnight.checked_add(DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_a_last_day_or_a_time() {
        let now = 10 * DAY_MS;
        for (text, ms) in [
            ("30d", 40 * DAY_MS),
            ("2w", 24 * DAY_MS),
            ("12h", now + 43_200_000),
            ("5 m", now + 300_000),
            ("1s", now + 1_000),
            ("1970-01-20", 20 * DAY_MS),
            ("1970-01-11T00:00:00.001Z", now + 1),
        ] {
            assert_eq!(from(text, now), Ok(Expiry(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_over_or_never_is_refused() {
        let now = 20 * DAY_MS;
        for bad in [
            "",
            "d",
            "30",
            "-1d",
            "0d",
            "1.5d",
            "never",
            "1970-01-20",
            "1970-13-01",
            "4000d",
            "99999999999999999999d",
            "2500-01-01",
        ] {
            assert!(from(bad, now).is_err(), "{bad}");
        }
    }
}
