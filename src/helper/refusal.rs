//! Why an operation does not begin, in words for the caller.

use std::fmt;

use crate::exec::{Ending, RefusalCode};

/// An obstacle and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: RefusalCode,
    message: String,
}

impl Refusal {
    /// Says what is in the way and what to do about it, in one sentence.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The machine said no.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(RefusalCode::Failed, message)
    }

    /// What the caller asked for cannot be run.
    pub fn bad_command(message: impl Into<String>) -> Self {
        Self::new(RefusalCode::BadCommand, message)
    }

    /// What is in the way, in a sentence.
    pub fn words(&self) -> &str {
        &self.message
    }

    /// Why, in a word.
    pub fn code(&self) -> RefusalCode {
        self.code
    }

    /// Whether it came before anything was started.
    pub fn is_of_the_request(&self) -> bool {
        self.code != RefusalCode::Failed
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Refusal> for Ending {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            code: refusal.code,
            message: refusal.message,
        }
    }
}
