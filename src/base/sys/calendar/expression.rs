//! A calendar expression: its fields, and how its text is parsed.

use std::fmt;
use std::str::FromStr;

use super::error::CalendarError;
use super::field::{CalendarField, FieldRange};
use super::zone::CalendarZone;

/// The maximum length of an expression in bytes. Longer ones are refused.
const MAX_BYTES: usize = 128;

/// The days of the week, in the order of their bits.
pub(super) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// All days of the week.
pub(super) const EVERY_DAY: u8 = 0b111_1111;

/// Times in systemd's calendar syntax. Fractions of a second and times since 1970 are not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    text: String,
    pub(super) zone: CalendarZone,
    /// A bit for each day of the week, Monday first.
    pub(super) weekdays: u8,
    pub(super) year: CalendarField,
    pub(super) month: CalendarField,
    pub(super) day: CalendarField,
    /// Whether the days are counted from the end of the month.
    pub(super) from_end: bool,
    pub(super) hour: CalendarField,
    pub(super) minute: CalendarField,
    pub(super) second: CalendarField,
}

impl Calendar {
    /// Returns the expression as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A time at midnight of each day, to be narrowed.
    fn midnight(text: &str, zone: CalendarZone) -> Self {
        let zero = || CalendarField::only(0);
        Self {
            text: text.to_owned(),
            zone,
            weekdays: EVERY_DAY,
            year: CalendarField::default(),
            month: CalendarField::default(),
            day: CalendarField::default(),
            from_end: false,
            hour: zero(),
            minute: zero(),
            second: zero(),
        }
    }

    /// Narrows it to what a shorthand means; returns whether the text is one.
    fn apply_shorthand(&mut self, word: &str) -> bool {
        let first = || CalendarField::only(1);
        match word.to_ascii_lowercase().as_str() {
            "minutely" => {
                self.hour = CalendarField::default();
                self.minute = CalendarField::default();
            }
            "hourly" => self.hour = CalendarField::default(),
            "daily" => {}
            "weekly" => self.weekdays = 1,
            "monthly" => self.day = first(),
            "quarterly" => {
                self.day = first();
                self.month = CalendarField::each(&[1, 4, 7, 10]);
            }
            "semiannually" | "semi-annually" | "biannually" | "bi-annually" => {
                self.day = first();
                self.month = CalendarField::each(&[1, 7]);
            }
            "annually" | "yearly" | "anually" => {
                self.day = first();
                self.month = first();
            }
            _ => return false,
        }
        true
    }

    /// Parses the date at the beginning of `text`; returns the rest, which is all of it if there is no date.
    fn parse_date<'a>(&mut self, text: &'a str) -> Result<&'a str, CalendarError> {
        if text.is_empty() {
            return Ok(text);
        }
        let (first, rest) = CalendarField::parse(text)?;
        if rest.is_empty() || rest.starts_with(':') {
            return Ok(text);
        }
        let (second, rest) = self.parse_after_separator(rest)?;
        if rest.is_empty() || rest.starts_with(' ') {
            (self.month, self.day) = (first, second);
            return Ok(rest.trim_start_matches(' '));
        }
        if self.from_end {
            return Err(SHAPE_ERROR);
        }
        let (third, rest) = self.parse_after_separator(rest)?;
        if !rest.is_empty() && !rest.starts_with(' ') {
            return Err(SHAPE_ERROR);
        }
        (self.year, self.month, self.day) = (first, second, third);
        for part in &mut self.year.0 {
            part.start = whole_year(part.start);
            part.stop = part.stop.map(whole_year);
        }
        Ok(rest.trim_start_matches(' '))
    }

    /// Parses a field after `-`, or after `~`, which counts days from the end of the month.
    fn parse_after_separator<'a>(
        &mut self,
        text: &'a str,
    ) -> Result<(CalendarField, &'a str), CalendarError> {
        let rest = match text.strip_prefix('~') {
            Some(rest) => {
                self.from_end = true;
                rest
            }
            None => text.strip_prefix('-').ok_or(SHAPE_ERROR)?,
        };
        CalendarField::parse(rest)
    }

    fn parse_time(&mut self, text: &str) -> Result<(), CalendarError> {
        if text.is_empty() {
            return Ok(());
        }
        let (hour, rest) = CalendarField::parse(text)?;
        let rest = rest.strip_prefix(':').ok_or(SHAPE_ERROR)?;
        let (minute, rest) = CalendarField::parse(rest)?;
        (self.hour, self.minute) = (hour, minute);
        if rest.is_empty() {
            return Ok(());
        }
        let rest = rest.strip_prefix(':').ok_or(SHAPE_ERROR)?;
        let (second, rest) = CalendarField::parse(rest)?;
        self.second = second;
        if rest.is_empty() {
            Ok(())
        } else {
            Err(SHAPE_ERROR)
        }
    }

    fn check(&self) -> Result<(), CalendarError> {
        let range = |from, to| FieldRange {
            from,
            to,
            from_end: false,
        };
        self.year.check(range(1970, 2199))?;
        self.month.check(range(1, 12))?;
        self.day.check(FieldRange {
            from_end: self.from_end,
            ..range(1, 31)
        })?;
        self.hour.check(range(0, 23))?;
        self.minute.check(range(0, 59))?;
        self.second.check(range(0, 59))
    }
}

const SHAPE_ERROR: CalendarError =
    CalendarError::new("this is no date and time such as `*-*-* 03:00`");

/// Completes a year of two digits.
fn whole_year(year: u32) -> u32 {
    match year {
        0..70 => 2000 + year,
        70..100 => 1900 + year,
        year => year,
    }
}

/// Parses the days of the week at the beginning of `text`, if there are any; returns the rest.
fn parse_weekdays(text: &str) -> Result<(u8, &str), CalendarError> {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Ok((EVERY_DAY, text));
    }
    let (days, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut bits = 0;
    for part in days.split(',') {
        let range = part.split_once("..").or_else(|| part.split_once('-'));
        let (first, last) = range.unwrap_or((part, part));
        let (first, last) = (weekday(first)?, weekday(last)?);
        if first > last {
            return Err(CalendarError::new(
                "a range of weekdays ends before it begins",
            ));
        }
        for day in first..=last {
            bits |= 1 << day;
        }
    }
    Ok((bits, rest.trim_start_matches(' ')))
}

/// The number of a day of the week, by its name or its first three letters; Monday is 0.
fn weekday(name: &str) -> Result<usize, CalendarError> {
    let is_it = |day: &str| {
        name.eq_ignore_ascii_case(day)
            || day
                .get(..3)
                .is_some_and(|short| name.eq_ignore_ascii_case(short))
    };
    let found = WEEKDAYS.iter().position(|day| is_it(day));
    found.ok_or(CalendarError::new("a word is no weekday and no shorthand"))
}

impl FromStr for Calendar {
    type Err = CalendarError;

    fn from_str(text: &str) -> Result<Self, CalendarError> {
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(CalendarError::new(
                "the expression is empty or longer than 128 bytes",
            ));
        }
        let (body, zone) = CalendarZone::split_off(text)?;
        let mut parsed = Self::midnight(text, zone);
        if parsed.apply_shorthand(body) {
            return Ok(parsed);
        }
        let (weekdays, rest) = parse_weekdays(body)?;
        parsed.weekdays = weekdays;
        let rest = parsed.parse_date(rest)?;
        parsed.parse_time(rest)?;
        parsed.check()?;
        Ok(parsed)
    }
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
