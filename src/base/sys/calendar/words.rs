//! A calendar expression in words, for the person who approves it.

use super::expression::{Calendar, EVERY_DAY, WEEKDAYS};
use super::zone::CalendarZone;

impl Calendar {
    /// Describes the times in words, such as `every day at 03:00`. An expression without simple words is quoted, so
    /// the words never describe less than it does.
    pub fn words(&self) -> String {
        let words = match (self.days(), self.clock()) {
            (Some(days), Some(clock)) => format!("{days} {clock}"),
            _ => format!(
                "at each time that matches the systemd calendar expression \"{}\"",
                self.as_str()
            ),
        };
        let zone = match &self.zone {
            CalendarZone::Local => "in the host's time zone",
            CalendarZone::Utc => "in UTC",
            CalendarZone::Named(name) => name,
        };
        format!("{words} ({zone})")
    }

    fn days(&self) -> Option<String> {
        if self.from_end {
            return None;
        }
        let is_any_date = self.year.is_any() && self.month.is_any() && self.day.is_any();
        if is_any_date {
            return Some(self.weekday_words());
        }
        if self.weekdays != EVERY_DAY {
            return None;
        }
        let day = self.day.single()?;
        if self.year.is_any() && self.month.is_any() {
            return Some(format!("on day {day} of every month"));
        }
        let (year, month) = (self.year.single()?, self.month.single()?);
        Some(format!("once, on {year:04}-{month:02}-{day:02}"))
    }

    fn weekday_words(&self) -> String {
        if self.weekdays == EVERY_DAY {
            return "every day".to_owned();
        }
        let all = WEEKDAYS.iter().enumerate();
        let meant = all.filter(|(number, _)| self.weekdays & (1 << number) != 0);
        let names: Vec<&str> = meant.map(|(_, name)| *name).collect();
        format!("every {}", names.join(", "))
    }

    fn clock(&self) -> Option<String> {
        let second = self.second.single()?;
        if let (Some(hour), Some(minute)) = (self.hour.single(), self.minute.single()) {
            let seconds = match second {
                0 => String::new(),
                second => format!(":{second:02}"),
            };
            return Some(format!("at {hour:02}:{minute:02}{seconds}"));
        }
        if second != 0 || !self.hour.is_any() {
            return None;
        }
        if let Some(minute) = self.minute.single() {
            return Some(format!("at minute {minute:02} of each hour"));
        }
        match self.minute.repetition()? {
            [0, step] if 60 % step == 0 => Some(format!("every {step} minutes")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::Calendar;

    #[test]
    fn common_times_are_described_and_others_are_quoted() {
        let table = [
            ("daily", "every day at 00:00 (in the host's time zone)"),
            ("*-*-* 03:00 UTC", "every day at 03:00 (in UTC)"),
            (
                "Mon,Wed 02:30:05",
                "every Monday, Wednesday at 02:30:05 (in the host's time zone)",
            ),
            (
                "*:0/15",
                "every day every 15 minutes (in the host's time zone)",
            ),
            (
                "hourly",
                "every day at minute 00 of each hour (in the host's time zone)",
            ),
            (
                "monthly",
                "on day 1 of every month at 00:00 (in the host's time zone)",
            ),
            (
                "2026-11-26 09:41:07",
                "once, on 2026-11-26 at 09:41:07 (in the host's time zone)",
            ),
            (
                "*-*-* 1,5:00",
                "at each time that matches the systemd calendar expression \"*-*-* 1,5:00\" (in the host's time zone)",
            ),
        ];
        for (text, words) in table {
            let calendar: Calendar = text.parse().unwrap();
            assert_eq!(calendar.words(), words);
        }
        for text in [
            "Mon *-*-01",
            "*-*~1",
            "*:0/7",
            "*:5/15",
            "2026-*-01",
            "8..17:00",
        ] {
            let calendar: Calendar = text.parse().unwrap();
            assert!(
                calendar.words().contains(&format!("\"{text}\"")),
                "{}",
                calendar.words()
            );
        }
    }
}
