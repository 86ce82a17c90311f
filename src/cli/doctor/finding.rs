//! The result of one check: its state, and what to do if there is a problem.

use serde_json::{Value, json};

use super::super::console::style::Style;
use gatewren_gate::owner_actions::sanitize;

/// The state of the checked item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingState {
    /// The check could not run, or does not apply.
    Skipped,
    /// It works.
    Good,
    /// It works, and the owner may have chosen it so.
    Note,
    /// It works, and a server that is some days old needs more.
    Later,
    /// It works, but needs attention.
    Warning,
    /// It does not work.
    Problem,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The name of the check, as one word.
    pub check: &'static str,
    /// The state.
    pub state: FindingState,
    /// What the check saw.
    pub seen: String,
    /// What to do.
    pub remedy: Option<String>,
}

impl Finding {
    /// Creates a finding for something that works.
    pub fn good(check: &'static str, seen: impl Into<String>) -> Self {
        Self::new(check, FindingState::Good, seen)
    }

    /// Creates a finding for a check that could not run or does not apply.
    pub fn skipped(check: &'static str, seen: impl Into<String>) -> Self {
        Self::new(check, FindingState::Skipped, seen)
    }

    /// Creates a finding for a choice of the owner, which never changes the exit code.
    pub fn note(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, FindingState::Note, seen).with(remedy)
    }

    /// Creates a finding for something that a new server need not have yet.
    pub fn later(check: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, FindingState::Later, seen).with(remedy)
    }

    /// Creates a finding for something that works, but needs attention.
    pub fn warning(
        check: &'static str,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(check, FindingState::Warning, seen).with(remedy)
    }

    /// Creates a finding for something that does not work.
    pub fn problem(
        check: &'static str,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(check, FindingState::Problem, seen).with(remedy)
    }

    fn new(check: &'static str, state: FindingState, seen: impl Into<String>) -> Self {
        Self {
            check,
            state,
            seen: seen.into(),
            remedy: None,
        }
    }

    /// Adds what to do; also for a skipped check.
    pub fn with(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The finding as a line, and a second one with what to do.
    pub fn line(&self) -> String {
        let Self { check, seen, .. } = self;
        let word = self.state.word();
        let padded = format!("{word:<8}");
        let state = match Style::of_word(word) {
            Some(style) => style.paint(&padded),
            None => padded,
        };
        let line = format!("{state} {check:<12} {}", sanitize(seen));
        match &self.remedy {
            Some(remedy) => format!("{line}\n{:<21} -> {}", "", sanitize(remedy)),
            None => line,
        }
    }

    /// The finding as JSON.
    pub fn json(&self) -> Value {
        json!({
            "check": self.check,
            "state": self.state.word(),
            "seen": self.seen,
            "remedy": self.remedy,
        })
    }
}

impl FindingState {
    /// The name of the state, in text and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Skipped => "skipped",
            Self::Good => "ok",
            Self::Note => "note",
            Self::Later => "later",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}
