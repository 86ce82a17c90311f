//! The times of a calendar expression.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use time::{Date, Duration, Month, PrimitiveDateTime, Time};

use super::expression::{Calendar, EVERY_DAY};

/// The maximum number of steps of a search. An expression that needs more, such as 31 February, has no further time.
const MAX_STEPS: u32 = 20_000;

/// The last year of a search, as in systemd.
const LAST_YEAR: i32 = 2199;

/// The seconds of a day.
const DAY_S: u32 = 86_400;

impl Calendar {
    /// Returns the first time after `after_ms`, in milliseconds since 1970; `None` if there is no further one.
    ///
    /// A local time that a clock change leaves out does not apply on that day, as in systemd. One that occurs twice
    /// applies only the first time.
    pub fn next_after(&self, after_ms: u64) -> Option<u64> {
        let zone = self.zone.load()?;
        let after = i64::try_from(after_ms / 1_000).ok()?;
        let mut civil = to_civil(&zone, after)?;
        for _ in 0..MAX_STEPS {
            civil = self.next_match(civil.checked_add(Duration::SECOND)?)?;
            match to_instant(&zone, civil) {
                Some(instant) if instant > after => {
                    return u64::try_from(instant).ok()?.checked_mul(1_000);
                }
                _ => {}
            }
        }
        None
    }

    /// Returns up to `count` times after `after_ms`, in milliseconds since 1970.
    pub fn upcoming(&self, after_ms: u64, count: usize) -> Vec<u64> {
        let first = self.next_after(after_ms);
        std::iter::successors(first, |last| self.next_after(*last))
            .take(count)
            .collect()
    }

    /// Returns the shortest time between two times of one day, or of two days in sequence, in seconds.
    pub fn shortest_interval_s(&self) -> u32 {
        let all = |field: &super::field::CalendarField, most: u32| {
            let first = field.next(0, None);
            let numbers = std::iter::successors(first, |last| field.next(last + 1, None));
            numbers
                .take_while(|number| *number <= most)
                .collect::<Vec<u32>>()
        };
        let (hours, minutes, seconds) = (
            all(&self.hour, 23),
            all(&self.minute, 59),
            all(&self.second, 59),
        );
        let mut shortest = DAY_S;
        let mut first = None;
        let mut last: Option<u32> = None;
        for hour in &hours {
            for minute in &minutes {
                for second in &seconds {
                    let at = (hour * 60 + minute) * 60 + second;
                    shortest = shortest.min(last.map_or(DAY_S, |last| at - last));
                    first = first.or(Some(at));
                    last = Some(at);
                }
            }
        }
        let over_midnight = first
            .zip(last)
            .map_or(DAY_S, |(first, last)| DAY_S + first - last);
        shortest.min(over_midnight)
    }

    /// Returns the first local time from `least` on that matches all fields.
    fn next_match(&self, least: PrimitiveDateTime) -> Option<PrimitiveDateTime> {
        let mut at = least;
        for _ in 0..MAX_STEPS {
            if at.year() > LAST_YEAR {
                return None;
            }
            at = match self.step(at)? {
                Step::Match => return Some(at),
                Step::Later(later) => later,
            };
        }
        None
    }

    /// Checks a local time; returns a later one to check next if it does not match.
    fn step(&self, at: PrimitiveDateTime) -> Option<Step> {
        let (date, time) = (at.date(), at.time());
        let year_now = u32::try_from(date.year()).ok()?;
        let year = self.year.next(year_now, None)?;
        if year != year_now {
            return midnight(i32::try_from(year).ok()?, Month::January, 1).map(Step::Later);
        }
        let month_now = u32::from(u8::from(date.month()));
        match self.month.next(month_now, None).filter(|m| *m <= 12) {
            None => return midnight(date.year() + 1, Month::January, 1).map(Step::Later),
            Some(month) if month != month_now => {
                let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
                return midnight(date.year(), month, 1).map(Step::Later);
            }
            Some(_) => {}
        }
        let last_day = u32::from(date.month().length(date.year()));
        let day_now = u32::from(date.day());
        let day = self.day.next(day_now, self.from_end.then_some(last_day));
        match day.filter(|day| *day <= last_day && *day > 0) {
            None => return next_month(date).map(Step::Later),
            Some(day) if day != day_now => {
                let day = u8::try_from(day).ok()?;
                return midnight(date.year(), date.month(), day).map(Step::Later);
            }
            Some(_) => {}
        }
        let weekday = date.weekday().number_days_from_monday();
        if self.weekdays != EVERY_DAY && self.weekdays & (1 << weekday) == 0 {
            return next_day(date).map(Step::Later);
        }
        self.step_in_day(date, time)
    }

    fn step_in_day(&self, date: Date, time: Time) -> Option<Step> {
        let (hour, minute, second) = time.as_hms();
        let [hour, minute, second] = [hour, minute, second].map(u32::from);
        let Some(next_hour) = self.hour.next(hour, None).filter(|h| *h <= 23) else {
            return next_day(date).map(Step::Later);
        };
        if next_hour != hour {
            return moment(date, [next_hour, 0, 0]).map(Step::Later);
        }
        let Some(next_minute) = self.minute.next(minute, None).filter(|m| *m <= 59) else {
            let later = moment(date, [hour, 0, 0])?.checked_add(Duration::HOUR)?;
            return Some(Step::Later(later));
        };
        if next_minute != minute {
            return moment(date, [hour, next_minute, 0]).map(Step::Later);
        }
        match self.second.next(second, None).filter(|s| *s <= 59) {
            None => {
                let later = moment(date, [hour, minute, 0])?.checked_add(Duration::MINUTE)?;
                Some(Step::Later(later))
            }
            Some(next) if next != second => moment(date, [hour, minute, next]).map(Step::Later),
            Some(_) => Some(Step::Match),
        }
    }
}

/// The result of a check of a local time.
enum Step {
    /// It matches.
    Match,
    /// It does not; this is the next one that may.
    Later(PrimitiveDateTime),
}

fn midnight(year: i32, month: Month, day: u8) -> Option<PrimitiveDateTime> {
    let date = Date::from_calendar_date(year, month, day).ok()?;
    Some(date.midnight())
}

fn next_day(date: Date) -> Option<PrimitiveDateTime> {
    Some(date.next_day()?.midnight())
}

fn next_month(date: Date) -> Option<PrimitiveDateTime> {
    match date.month() {
        Month::December => midnight(date.year() + 1, Month::January, 1),
        month => midnight(date.year(), month.next(), 1),
    }
}

/// A time of a day, as hour, minute and second.
fn moment(date: Date, clock: [u32; 3]) -> Option<PrimitiveDateTime> {
    let [hour, minute, second] = clock.map(|number| u8::try_from(number).unwrap_or(u8::MAX));
    Some(date.with_time(Time::from_hms(hour, minute, second).ok()?))
}

/// The offset of a zone from UTC at a time, in seconds.
fn offset(zone: &TimeZone, instant: i64) -> Option<i64> {
    let timestamp = Timestamp::from_second(instant).ok()?;
    Some(i64::from(zone.to_offset(timestamp).seconds()))
}

fn to_civil(zone: &TimeZone, instant: i64) -> Option<PrimitiveDateTime> {
    let shifted = instant.checked_add(offset(zone, instant)?)?;
    let epoch = midnight(1970, Month::January, 1)?;
    epoch.checked_add(Duration::seconds(shifted))
}

/// The instant of a local time: the earlier one if there are two, `None` if a clock change leaves it out.
fn to_instant(zone: &TimeZone, civil: PrimitiveDateTime) -> Option<i64> {
    let epoch = midnight(1970, Month::January, 1)?;
    let local = (civil - epoch).whole_seconds();
    let day = i64::from(DAY_S);
    let around = [local - day, local + day];
    let candidates = around.into_iter().filter_map(|near| {
        let instant = local - offset(zone, near)?;
        (offset(zone, instant)? == local - instant).then_some(instant)
    });
    candidates.min()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::expression::Calendar;
    use crate::sys::{moment_ms, rfc3339, skip};

    fn times(expression: &str, after: &str, count: usize) -> Vec<String> {
        let calendar: Calendar = expression.parse().unwrap();
        let times = calendar.upcoming(moment_ms(after).unwrap(), count);
        let seconds = |ms| rfc3339(ms).replace(".000Z", "Z");
        times.into_iter().map(seconds).collect()
    }

    #[test]
    fn a_clock_change_leaves_out_a_time_and_repeats_none() {
        if !std::path::Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
            skip("there are no time zones here");
            return;
        }
        assert_eq!(
            times("*-*-* 02:30 Europe/Berlin", "2026-03-27T12:00:00Z", 2),
            ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]
        );
        assert_eq!(
            times("*-*-* 02:30 Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        assert_eq!(
            times("hourly Europe/Berlin", "2026-03-29T00:30:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"]
        );
        // The hour that occurs twice counts once.
        assert_eq!(
            times("*-*-* 02:30 Europe/Berlin", "2026-10-25T01:00:00Z", 1),
            ["2026-10-26T01:30:00Z"]
        );
    }

    #[test]
    fn an_expression_without_a_time_has_no_next_one() {
        assert_eq!(times("*-02-31", "2026-01-01T00:00:00Z", 1), [""; 0]);
        assert_eq!(times("2020-01-01", "2026-01-01T00:00:00Z", 1), [""; 0]);
        assert_eq!(
            times("Mon *-02-29 UTC", "2026-01-01T00:00:00Z", 1),
            ["2044-02-29T00:00:00Z"]
        );
    }

    #[test]
    fn the_shortest_interval_also_counts_over_midnight() {
        let interval = |text: &str| text.parse::<Calendar>().unwrap().shortest_interval_s();
        assert_eq!(interval("daily"), 86_400);
        assert_eq!(interval("*:0/15"), 900);
        assert_eq!(interval("minutely"), 60);
        assert_eq!(interval("*:*:*"), 1);
        assert_eq!(interval("*-*-* 00,23:00,59"), 60);
        assert_eq!(interval("*-*-* 3:00,01"), 60);
        assert_eq!(interval("2026-11-26 09:41:07"), 86_400);
    }

    /// The parts that the expressions below combine.
    const DAYS: [&str; 8] = [
        "",
        "Mon ",
        "Sat,Sun ",
        "Mon..Fri ",
        "tue,Thu..sat ",
        "Sunday ",
        "Mon-Wed ",
        "Fri..Mon ",
    ];
    const DATES: [&str; 14] = [
        "",
        "*-*-* ",
        "*-*-1 ",
        "*-2-29 ",
        "*-*~1 ",
        "*-*~1..3 ",
        "*-05~07/1 ",
        "2027-*-1/5 ",
        "27..29-6,9-15 ",
        "*-1/3-1 ",
        "10-31 ",
        "*-*-32 ",
        "*-*-1..31/2 ",
        "*-*~7/3 ",
    ];
    const CLOCKS: [&str; 16] = [
        "",
        "03:00",
        "02:30",
        "2:30:15",
        "*:0/15",
        "*:0/7",
        "0/6:00",
        "8..17/3:0,30",
        "*:*:0/20",
        "1,2,3:59:59",
        "23:59",
        "24:00",
        "*:0/60",
        "*:*/5",
        "3",
        "*:5..10/2:1",
    ];
    const ZONES: [&str; 4] = ["", " UTC", " Europe/Berlin", " America/New_York"];
    const WORDS: [&str; 10] = [
        "minutely",
        "hourly",
        "daily",
        "weekly",
        "monthly",
        "quarterly",
        "semiannually",
        "yearly",
        "annually",
        "Daily UTC",
    ];

    /// The times that systemd calculates; `None` if it refuses the expression.
    fn reference(expression: &str, after: &str) -> Option<Vec<String>> {
        let base = after.replace('T', " ").replace('Z', " UTC");
        let output = Command::new("systemd-analyze")
            .args(["calendar", "--iterations=4", "--base-time", &base])
            .arg(expression)
            .env("TZ", ":/etc/localtime")
            .output()
            .unwrap();
        if !output.status.success() {
            return None;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        // In UTC the line "(in UTC)" is absent, and the time itself is in UTC.
        let mut found = Vec::new();
        for line in text.lines() {
            let (name, value) = line.split_once(": ").unwrap_or(("", ""));
            let name = name.trim();
            let utc = name == "(in UTC)";
            if utc {
                found.pop();
            }
            if utc
                || name == "Next elapse"
                || name.starts_with("Iter")
                || name.starts_with("Iteration")
            {
                let words: Vec<&str> = value.split_whitespace().collect();
                if let [_, date, clock, ..] = words.as_slice() {
                    found.push(format!("{date}T{clock}Z"));
                }
            }
        }
        Some(found)
    }

    #[test]
    fn hundreds_of_expressions_have_the_times_that_systemd_calculates() {
        let there = Command::new("systemd-analyze").arg("--version").output();
        if !there.is_ok_and(|output| output.status.success()) {
            skip("there is no systemd-analyze");
            return;
        }
        let mut all: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
        for (number, day) in DAYS.iter().enumerate() {
            for (second, date) in DATES.iter().enumerate() {
                for (third, clock) in CLOCKS.iter().enumerate() {
                    // A fifth of all combinations: each pair of parts is among them.
                    if (number + 2 * second + 3 * third) % 5 == 0 {
                        let zone = ZONES[(number + second + third) % ZONES.len()];
                        all.push(format!("{day}{date}{clock}").trim_end().to_owned() + zone);
                    }
                }
            }
        }
        let (mut accepted, mut wrong) = (0, Vec::new());
        for (number, text) in all.iter().enumerate() {
            // Not in the hour that a clock change repeats, which systemd counts by the day's other times.
            let after = [
                "2026-11-26T09:41:07Z",
                "2027-03-27T11:00:00Z",
                "2028-02-28T23:30:00Z",
            ];
            let after = after[number % after.len()];
            let expected = reference(text, after);
            let ours = text.parse::<Calendar>().ok();
            let ours = ours.map(|_| times(text, after, 4));
            accepted += usize::from(ours.is_some());
            if ours != expected {
                wrong.push(format!(
                    "{text} after {after}: {ours:?}, systemd {expected:?}"
                ));
            }
        }
        assert!(
            all.len() > 300 && accepted > 200,
            "{} {accepted}",
            all.len()
        );
        assert_eq!(wrong, [""; 0], "{} of {}", wrong.len(), all.len());
    }
}
