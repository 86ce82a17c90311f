//! What was found: how it is, and what to do where it is not well.

use serde_json::{Value, json};

use crate::deeds::plain;

/// How it is with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nobody could look, or there is nothing to look at.
    Skipped,
    /// It is well.
    Good,
    /// It works, and is to be looked at.
    Warning,
    /// It does not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which, as one word.
    pub check: &'static str,
    /// How it is.
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What to do.
    pub remedy: Option<String>,
}

impl Finding {
    /// It is well.
    pub fn good(check: &'static str, seen: impl Into<String>) -> Self {
        Self::new(check, State::Good, seen)
    }

    /// Nobody could look, or there is nothing to look at.
    pub fn skipped(check: &'static str, seen: impl Into<String>) -> Self {
        Self::new(check, State::Skipped, seen)
    }

    /// It works, and is to be looked at.
    pub fn warning(
        check: &'static str,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(check, State::Warning, seen).with(remedy)
    }

    /// It does not work.
    pub fn problem(
        check: &'static str,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(check, State::Problem, seen).with(remedy)
    }

    fn new(check: &'static str, state: State, seen: impl Into<String>) -> Self {
        Self {
            check,
            state,
            seen: seen.into(),
            remedy: None,
        }
    }

    /// With what to do, for what is skipped too.
    pub fn with(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// A line, and a second one with what to do.
    pub fn line(&self) -> String {
        let Self { check, seen, .. } = self;
        let line = format!("{:<8} {check:<12} {}", self.state.word(), plain(seen));
        match &self.remedy {
            Some(remedy) => format!("{line}\n{:<21} -> {}", "", plain(remedy)),
            None => line,
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "check": self.check,
            "state": self.state.word(),
            "seen": self.seen,
            "remedy": self.remedy,
        })
    }
}

impl State {
    /// Its word, in words and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}
