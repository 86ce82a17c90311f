//! How it stands with a call: ended, under way, or cut off.

use crate::vault::AuditCall;

/// How it stands with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStatus {
    /// It has ended, in this word.
    Ended(String),
    /// The server that ran it is gone and has written no outcome.
    Unknown,
    /// The server that ran last, or runs now, has written no outcome yet.
    Open,
}

impl CallStatus {
    /// Of a call, where the last server began to run behind the row `run_after`.
    pub fn of(call: &AuditCall, run_after: i64) -> Self {
        match &call.ended {
            Some(end) => Self::Ended(end.outcome.clone().unwrap_or_default()),
            None if call.seq > run_after => Self::Open,
            None => Self::Unknown,
        }
    }

    /// In a word.
    pub fn word(&self) -> &str {
        match self {
            Self::Ended(word) => word,
            Self::Unknown => "unknown",
            Self::Open => "open",
        }
    }

    /// In so many words as it takes.
    pub fn words(&self) -> &str {
        match self {
            Self::Ended(word) => word,
            Self::Unknown => "unknown: no outcome was written",
            Self::Open => {
                "open: it is under way, or the server was ended before an outcome was written"
            }
        }
    }
}
