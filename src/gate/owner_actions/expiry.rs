//! When a token expires, as a person types it: a duration, a date, or never.

use std::str::FromStr;

use super::agent_name::DOCTOR;
use gatewren_base::sys::{moment_ms, now_ms, rfc3339};
use gatewren_store::vault::Agent;

/// Milliseconds of each unit.
const UNITS: [(char, u64); 5] = [
    ('w', 7 * DAY_MS),
    ('d', DAY_MS),
    ('h', 3_600_000),
    ('m', 60_000),
    ('s', 1_000),
];

const DAY_MS: u64 = 86_400_000;

/// The latest expiry that is accepted: a later one is a typo, or no expiry is meant.
const MOST_MS: u64 = 3_660 * DAY_MS;

/// The default validity of a new token, in the form that a person would type.
pub const DEFAULT_EXPIRY: &str = "365d";

/// The word for a token that never expires.
const NEVER: &str = "never";

/// The owner is warned of a token that expires within this time.
const WARNED_MS: u64 = 30 * DAY_MS;

/// A time in the future, in milliseconds since 1970; `None` is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(pub Option<u64>);

impl Expiry {
    /// The default for a new token: [`DEFAULT_EXPIRY`] from now.
    pub fn of_new() -> Self {
        Self(after(DEFAULT_EXPIRY, now_ms()))
    }
}

/// Returns when an agent's token expires, in milliseconds since 1970, if that is within the next 30 days; `None` for
/// a revoked agent, and for the agent of `gatewren doctor`, whose token expires after each run.
pub fn expires_soon(agent: &Agent, now_ms: u64) -> Option<u64> {
    if agent.revoked_ms.is_some() || agent.name == DOCTOR {
        return None;
    }
    let expires = agent.expires_ms?;
    (now_ms..now_ms.saturating_add(WARNED_MS))
        .contains(&expires)
        .then_some(expires)
}

impl FromStr for Expiry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        from(text, now_ms())
    }
}

/// Describes until when a token is valid.
pub fn valid_until(expires_ms: Option<u64>) -> String {
    expires_ms.map_or_else(
        || "which never expires".to_owned(),
        |ms| format!("which is valid until {}", rfc3339(ms)),
    )
}

fn from(text: &str, now: u64) -> Result<Expiry, String> {
    if text == NEVER {
        return Ok(Expiry(None));
    }
    let ms = after(text, now)
        .or_else(|| end_of_day(text))
        .or_else(|| moment_ms(text));
    let ms = ms.ok_or_else(|| {
        "use a duration such as 30d or 12h (units w, d, h, m, s), a last day such as 2027-01-31, a time such as \
         2027-01-31T18:00:00Z, or never"
            .to_owned()
    })?;
    if ms <= now {
        return Err("that time is in the past".to_owned());
    }
    if ms - now > MOST_MS {
        return Err(
            "that is more than ten years away; use never for a token that does not expire"
                .to_owned(),
        );
    }
    Ok(Expiry(Some(ms)))
}

fn after(text: &str, now: u64) -> Option<u64> {
    let (unit, factor) = UNITS.into_iter().find(|(unit, _)| text.ends_with(*unit))?;
    let count: u64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    now.checked_add(count.checked_mul(factor)?)
}

/// Returns the end of that day in UTC: the token is valid on the named day, up to a few hours in other time zones.
fn end_of_day(text: &str) -> Option<u64> {
    let is_date = text.len() == "2026-07-28".len();
    let midnight = is_date.then(|| moment_ms(text)).flatten()?;
    midnight.checked_add(DAY_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::config::Preset;

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
            assert_eq!(from(text, now), Ok(Expiry(Some(ms))), "{text}");
        }
        assert_eq!(from("never", now), Ok(Expiry(None)));
    }

    #[test]
    fn a_new_token_expires_after_a_year_and_its_owner_is_warned_30_days_before() {
        let now = now_ms();
        let Expiry(Some(expires)) = Expiry::of_new() else {
            panic!("it never expires")
        };
        assert!((now..now + 60_000).contains(&(expires - 365 * DAY_MS)));
        let agent = |expires_ms, revoked_ms| Agent {
            id: "agent_1".to_owned(),
            name: "a".to_owned(),
            token_sha256: [0; 32],
            preset: Preset::Observe,
            overrides: "{}".to_owned(),
            space: None,
            created_ms: 0,
            expires_ms,
            revoked_ms,
            last_used_ms: None,
        };
        let soon = |agent: &Agent| expires_soon(agent, 40 * DAY_MS);
        for (expires, is_soon) in [
            (39, false),
            (40, true),
            (69, true),
            (70, false),
            (400, false),
        ] {
            let expires = expires * DAY_MS;
            let found = soon(&agent(Some(expires), None));
            assert_eq!(found, is_soon.then_some(expires), "{expires}");
        }
        assert_eq!(soon(&agent(None, None)), None);
        assert_eq!(soon(&agent(Some(41 * DAY_MS), Some(1))), None);
        let doctor = Agent {
            name: DOCTOR.to_owned(),
            ..agent(Some(41 * DAY_MS), None)
        };
        assert_eq!(soon(&doctor), None);
    }

    #[test]
    fn what_is_over_or_too_far_away_is_refused() {
        let now = 20 * DAY_MS;
        for bad in [
            "",
            "d",
            "30",
            "-1d",
            "0d",
            "1.5d",
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
