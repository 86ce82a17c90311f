//! Levels for fluctuating values such as temperatures: up at once, down only with a margin.

use std::collections::BTreeMap;

use serde::Serialize;

/// The level of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueLevel {
    /// No action is needed.
    Normal,
    /// The owner should check it.
    High,
    /// A failure is imminent.
    Critical,
}

/// The thresholds of the levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelThresholds {
    /// The threshold of `High`.
    pub high: f64,
    /// The threshold of `Critical`.
    pub critical: f64,
    /// How far a value must fall below a threshold before its level falls: a value that fluctuates around a
    /// threshold keeps its level.
    pub margin: f64,
}

/// The last levels of several things of one kind, by name.
#[derive(Debug, Default)]
pub struct ValueLevels {
    last: BTreeMap<String, ValueLevel>,
}

impl ValueLevels {
    /// Updates and returns the levels of all current things; others are removed.
    pub fn of<'a>(
        &mut self,
        all: impl IntoIterator<Item = (&'a str, f64, LevelThresholds)>,
    ) -> &BTreeMap<String, ValueLevel> {
        let level = |(name, value, limits): (&str, f64, LevelThresholds)| {
            (name.to_owned(), limits.level(value, self.last.get(name)))
        };
        self.last = all.into_iter().map(level).collect();
        &self.last
    }
}

impl LevelThresholds {
    fn level(self, value: f64, last: Option<&ValueLevel>) -> ValueLevel {
        let now = self.plain(value);
        match last {
            // Within the margin, the level stays.
            Some(last) if now < *last => self.plain(value + self.margin).min(*last),
            _ => now,
        }
    }

    fn plain(self, value: f64) -> ValueLevel {
        if value >= self.critical {
            ValueLevel::Critical
        } else if value >= self.high {
            ValueLevel::High
        } else {
            ValueLevel::Normal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: LevelThresholds = LevelThresholds {
        high: 80.0,
        critical: 100.0,
        margin: 5.0,
    };

    #[test]
    fn a_class_is_left_only_when_it_is_clear() {
        let mut levels = ValueLevels::default();
        let mut at = |value| levels.of([("cpu", value, LIMITS)])["cpu"];
        for (value, expected) in [
            (79.9, ValueLevel::Normal),
            (80.0, ValueLevel::High),
            (75.1, ValueLevel::High),
            (79.0, ValueLevel::High),
            (74.9, ValueLevel::Normal),
            (79.0, ValueLevel::Normal),
            (120.0, ValueLevel::Critical),
            (96.0, ValueLevel::Critical),
            (94.0, ValueLevel::High),
            (99.0, ValueLevel::High),
            (101.0, ValueLevel::Critical),
            (20.0, ValueLevel::Normal),
        ] {
            assert_eq!(at(value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut levels = ValueLevels::default();
        levels.of([("a", 90.0, LIMITS), ("b", 1.0, LIMITS)]);
        assert_eq!(levels.of([("b", 1.0, LIMITS)]).len(), 1);
        assert_eq!(levels.of([("a", 78.0, LIMITS)])["a"], ValueLevel::Normal);
    }
}
