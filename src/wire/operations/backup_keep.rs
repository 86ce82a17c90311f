//! How many older backups of a subject are kept after a new one.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text_type::InvalidText;

/// The most backups that one rule keeps.
const MOST: u32 = 1000;

/// The length of a date, such as `2026-07-28`, at the beginning of the time in an id.
const DATE_BYTES: usize = 10;

/// The length of a month, such as `2026-07`.
const MONTH_BYTES: usize = 7;

/// Which backups of a subject to keep. A backup is kept if any rule keeps it. Days, weeks (from Monday) and months are
/// those of UTC, and of each the newest backup counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "WrittenKeep", deny_unknown_fields)]
#[schemars(description = "", inline)]
pub struct BackupKeep {
    /// The newest backups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// Days with a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<u32>,
    /// Weeks with a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly: Option<u32>,
    /// Months with a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly: Option<u32>,
}

/// The same before it is validated, and its schema.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(description = "", inline)]
struct WrittenKeep {
    /// The newest backups.
    #[schemars(range(min = 1, max = 1000))]
    last: Option<u32>,
    /// Days with a backup.
    #[schemars(range(min = 1, max = 1000))]
    daily: Option<u32>,
    /// Weeks with a backup.
    #[schemars(range(min = 1, max = 1000))]
    weekly: Option<u32>,
    /// Months with a backup.
    #[schemars(range(min = 1, max = 1000))]
    monthly: Option<u32>,
}

impl TryFrom<WrittenKeep> for BackupKeep {
    type Error = InvalidText;

    fn try_from(written: WrittenKeep) -> Result<Self, InvalidText> {
        let WrittenKeep {
            last,
            daily,
            weekly,
            monthly,
        } = written;
        let rules = [last, daily, weekly, monthly];
        let mut counts = rules.iter().flatten().peekable();
        if counts.peek().is_none() {
            return Err(InvalidText(
                "name at least one of last, daily, weekly and monthly",
            ));
        }
        if !counts.all(|count| (1..=MOST).contains(count)) {
            return Err(InvalidText(
                "last, daily, weekly and monthly must be 1 to 1000",
            ));
        }
        Ok(Self {
            last,
            daily,
            weekly,
            monthly,
        })
    }
}

/// How many periods of one kind have their newest backup kept.
struct KeepRule {
    most: Option<u32>,
    /// Returns the number of the period that a time is in.
    period: fn(&str) -> Option<i64>,
}

impl BackupKeep {
    /// Returns the times of the backups that no rule keeps, newest first. `stamps` are the times in the ids of all backups
    /// of one subject, in any order. The newest is never among the result, nor a time without a date.
    pub fn outdated(&self, mut stamps: Vec<String>) -> Vec<String> {
        stamps.retain(|stamp| day(stamp).is_some());
        stamps.sort_by(|a, b| b.cmp(a));
        let mut kept = BTreeSet::new();
        kept.extend(stamps.first().cloned());
        kept.extend(stamps.iter().take(count(self.last)).cloned());
        let rules: [KeepRule; 3] = [
            KeepRule {
                most: self.daily,
                period: day,
            },
            KeepRule {
                most: self.weekly,
                period: week,
            },
            KeepRule {
                most: self.monthly,
                period: month,
            },
        ];
        for KeepRule { most, period } in rules {
            let mut seen = BTreeSet::new();
            for stamp in &stamps {
                let Some(own) = period(stamp).filter(|own| !seen.contains(own)) else {
                    continue;
                };
                if seen.len() < count(most) {
                    seen.insert(own);
                    kept.insert(stamp.clone());
                }
            }
        }
        stamps.retain(|stamp| !kept.contains(stamp));
        stamps
    }
}

fn count(rule: Option<u32>) -> usize {
    rule.map_or(0, |count| count as usize)
}

/// Returns the number of the month of a time, counted from the year 0.
fn month(stamp: &str) -> Option<i64> {
    let (year, month) = stamp.get(..MONTH_BYTES)?.split_once('-')?;
    let (year, month): (i64, i64) = (year.parse().ok()?, month.parse().ok()?);
    (1..=12).contains(&month).then_some(year * 12 + month - 1)
}

/// Returns the number of the day of a time, counted from 1 January 1970 (Howard Hinnant's algorithm).
fn day(stamp: &str) -> Option<i64> {
    let months = month(stamp)?;
    let day = stamp.get(..DATE_BYTES)?.get(MONTH_BYTES..)?;
    let day: i64 = day.strip_prefix('-')?.parse().ok()?;
    if !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that the leap day is their last one.
    let shifted = months - 2;
    let (year, month) = (shifted.div_euclid(12), shifted.rem_euclid(12));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + day_of_year - 719_468)
}

/// Returns the number of the week of a time; weeks begin on Monday, and 1 January 1970 was a Thursday.
fn week(stamp: &str) -> Option<i64> {
    day(stamp).map(|day| (day + 3).div_euclid(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(text: &str) -> BackupKeep {
        serde_json::from_str(text).unwrap()
    }

    /// Returns the stamps that a rule deletes.
    fn gone(rule: &str, stamps: &[&str]) -> Vec<String> {
        keep(rule).outdated(stamps.iter().map(|&stamp| stamp.to_owned()).collect())
    }

    #[test]
    fn days_weeks_and_months_are_those_of_the_calendar() {
        assert_eq!(day("1970-01-01T00"), Some(0));
        assert_eq!(day("2000-02-29T00"), Some(11016));
        assert_eq!(day("2026-11-26T00"), Some(20783));
        // Sunday and Monday.
        assert_eq!(week("2026-11-22T"), week("2026-11-16T"));
        assert_eq!(
            week("2026-11-23T"),
            week("2026-11-22T").map(|week| week + 1)
        );
        assert_eq!(month("2026-01-"), month("2025-12-").map(|month| month + 1));
        for bad in [
            "2026-13-01",
            "2026-00-01",
            "2026-01-32",
            "20260728",
            "2026-1",
            "\u{e4}bcdefghi",
        ] {
            assert_eq!(day(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_rule_keeps_the_newest_of_its_periods_and_the_rest_is_outdated() {
        let stamps = [
            "2026-11-26T02-00-00.000Z",
            "2026-11-26T01-00-00.000Z",
            "2026-11-25T01-00-00.000Z",
            "2026-11-22T01-00-00.000Z",
            "2026-11-15T01-00-00.000Z",
            "2026-10-31T01-00-00.000Z",
        ];
        let but = |kept: &[usize]| -> Vec<String> {
            let gone = stamps
                .iter()
                .enumerate()
                .filter(|(at, _)| !kept.contains(at));
            gone.map(|(_, stamp)| (*stamp).to_owned()).collect()
        };
        assert_eq!(gone(r#"{"last":2}"#, &stamps), but(&[0, 1]));
        assert_eq!(gone(r#"{"daily":2}"#, &stamps), but(&[0, 2]));
        assert_eq!(gone(r#"{"weekly":3}"#, &stamps), but(&[0, 3, 4]));
        assert_eq!(gone(r#"{"monthly":2}"#, &stamps), but(&[0, 5]));
        assert_eq!(gone(r#"{"daily":2,"weekly":2}"#, &stamps), but(&[0, 2, 3]));
        assert_eq!(gone(r#"{"last":1000}"#, &stamps), [""; 0]);
        let mut reversed = stamps;
        reversed.reverse();
        assert_eq!(gone(r#"{"last":1}"#, &reversed), but(&[0]));
    }

    #[test]
    fn the_newest_and_what_has_no_date_are_never_outdated() {
        assert_eq!(
            gone(r#"{"monthly":1}"#, &["2026-11-26T02-00-00.000Z"]),
            [""; 0]
        );
        let undated = ["zzzzzzzzzz", "2026-11-26T02-00-00.000Z", "00000000"];
        assert_eq!(gone(r#"{"last":1}"#, &undated), [""; 0]);
    }

    #[test]
    fn a_rule_that_would_keep_nothing_is_refused() {
        for bad in [
            r"{}",
            r#"{"last":0}"#,
            r#"{"daily":1001}"#,
            r#"{"yearly":1}"#,
            r#"{"last":-1}"#,
        ] {
            assert!(serde_json::from_str::<BackupKeep>(bad).is_err(), "{bad}");
        }
        let rule = keep(r#"{"daily":7,"weekly":4}"#);
        assert_eq!(
            serde_json::to_string(&rule).unwrap(),
            r#"{"daily":7,"weekly":4}"#
        );
    }
}
