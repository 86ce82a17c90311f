//! How much is logged.

use std::fmt;
use std::str::FromStr;

use super::error::UnknownWord;

/// The least serious line that is still logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Only what went wrong.
    Error,
    /// And what may go wrong.
    Warn,
    /// And what happened.
    Info,
    /// And how.
    Debug,
    /// And every step.
    Trace,
}

impl LogLevel {
    const ALL: [Self; 5] = [
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        let known = Self::ALL.into_iter().find(|level| level.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, &Self::ALL.map(Self::as_str)))
    }
}
