//! One field of a calendar expression, such as the hours: numbers, ranges and repetitions.

use super::error::CalendarError;

/// The maximum number of parts in a field. More are refused.
const MAX_PARTS: usize = 64;

/// A part of a field: `start`, `start..stop`, `start/step` or `start..stop/step`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldPart {
    /// The first number.
    pub start: u32,
    /// The last number, of a range.
    pub stop: Option<u32>,
    /// The distance between two numbers; 0 if there is only the first.
    pub step: u32,
}

/// The parts of a field. No parts match every number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CalendarField(pub(super) Vec<FieldPart>);

/// The numbers that a field may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldRange {
    /// The lowest.
    pub from: u32,
    /// The highest.
    pub to: u32,
    /// Whether days are counted from the end of the month.
    pub from_end: bool,
}

impl CalendarField {
    /// A field with one number.
    pub(super) fn only(number: u32) -> Self {
        Self(vec![FieldPart {
            start: number,
            stop: None,
            step: 0,
        }])
    }

    /// A field with several numbers.
    pub(super) fn each(numbers: &[u32]) -> Self {
        Self(numbers.iter().flat_map(|one| Self::only(*one).0).collect())
    }

    /// Whether it matches every number.
    pub(super) fn is_any(&self) -> bool {
        self.0.is_empty()
    }

    /// The only number that it matches, if there is one.
    pub(super) fn single(&self) -> Option<u32> {
        match self.0.as_slice() {
            [
                FieldPart {
                    start,
                    stop: None,
                    step: 0,
                },
            ] => Some(*start),
            _ => None,
        }
    }

    /// The start and the step, if it is one repetition without an end.
    pub(super) fn repetition(&self) -> Option<[u32; 2]> {
        match self.0.as_slice() {
            [
                FieldPart {
                    start,
                    stop: None,
                    step,
                },
            ] if *step > 0 => Some([*start, *step]),
            _ => None,
        }
    }

    /// Parses a field from the beginning of `text`; returns the rest.
    pub(super) fn parse(text: &str) -> Result<(Self, &str), CalendarError> {
        if let Some(rest) = text.strip_prefix('*') {
            return Ok((Self::default(), rest));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        loop {
            let (part, after) = parse_part(rest)?;
            parts.push(part);
            if parts.len() > MAX_PARTS {
                return Err(CalendarError::new("a field has too many parts"));
            }
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => return Ok((Self(parts), after)),
            }
        }
    }

    /// Checks that all numbers are within a range, with systemd's rules.
    pub(super) fn check(&self, range: FieldRange) -> Result<(), CalendarError> {
        let FieldRange { from, to, from_end } = range;
        // No day of a month is farther from its end in every month.
        let to = if from_end { to - 3 } else { to };
        let is_inside = |number: u32| (from..=to).contains(&number);
        let fits = |part: &FieldPart| {
            let stop_fits = part
                .stop
                .is_none_or(|stop| is_inside(stop) && stop >= part.start);
            let has_room = part.step <= to - from
                && if from_end {
                    part.step == 0 || part.start >= from + part.step || part.stop.is_some()
                } else {
                    part.start + part.step <= to || part.stop.is_some()
                };
            is_inside(part.start) && stop_fits && has_room
        };
        if self.0.iter().all(fits) {
            Ok(())
        } else {
            Err(CalendarError::new(
                "a number or a step is outside the range of its field",
            ))
        }
    }

    /// Returns the lowest number from `least` on that it matches. `last_day` is the last day of the month if the days
    /// are counted from there.
    pub(super) fn next(&self, least: u32, last_day: Option<u32>) -> Option<u32> {
        if self.is_any() {
            return Some(least);
        }
        let next_of = |part: &FieldPart| {
            let (start, stop) = match last_day {
                None => (part.start, part.stop),
                Some(days) => {
                    let day = |number: u32| (days + 1).saturating_sub(number);
                    match part.stop {
                        Some(stop) => (day(stop), Some(day(part.start))),
                        None => (day(part.start), None),
                    }
                }
            };
            if start >= least {
                return Some(start);
            }
            if part.step == 0 {
                return None;
            }
            let next = start + (least - start).div_ceil(part.step) * part.step;
            stop.is_none_or(|stop| next <= stop).then_some(next)
        };
        self.0.iter().filter_map(next_of).min()
    }
}

fn parse_part(text: &str) -> Result<(FieldPart, &str), CalendarError> {
    let (start, mut rest) = number(text)?;
    let mut part = FieldPart {
        start,
        stop: None,
        step: 0,
    };
    if let Some(after) = rest.strip_prefix("..") {
        let (stop, after) = number(after)?;
        (part.stop, part.step, rest) = (Some(stop), 1, after);
    }
    if let Some(after) = rest.strip_prefix('/') {
        let (step, after) = number(after)?;
        if step == 0 {
            return Err(CalendarError::new("a step is 0"));
        }
        (part.step, rest) = (step, after);
    }
    Ok((part, rest))
}

fn number(text: &str) -> Result<(u32, &str), CalendarError> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    // Four digits are enough for a year.
    if digits.is_empty() || digits.len() > 4 {
        return Err(CalendarError::new("a number is missing or too long"));
    }
    let number = digits.parse();
    number
        .map(|number| (number, rest))
        .map_err(|_| CalendarError::new("a number is invalid"))
}
