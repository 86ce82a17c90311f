//! The status of a call: ended, running, or interrupted.

use gatewren_store::vault::AuditCall;

/// The status of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStatus {
    /// It ended with this outcome.
    Ended(String),
    /// The server that ran it is gone and recorded no outcome.
    Unknown,
    /// The server that ran last, or runs now, has not recorded an outcome yet.
    Open,
}

impl CallStatus {
    /// Returns the status of a call; the last server started after row `run_after`.
    pub fn of(call: &AuditCall, run_after: i64) -> Self {
        match &call.ended {
            Some(end) => Self::Ended(end.outcome.clone().unwrap_or_default()),
            None if call.seq > run_after => Self::Open,
            None => Self::Unknown,
        }
    }

    /// Returns the status in one word.
    pub fn word(&self) -> &str {
        match self {
            Self::Ended(word) => word,
            Self::Unknown => "unknown",
            Self::Open => "open",
        }
    }

    /// Returns the status with an explanation.
    pub fn words(&self) -> &str {
        match self {
            Self::Ended(word) => word,
            Self::Unknown => "unknown: no outcome was recorded",
            Self::Open => {
                "open: it is still running, or the server stopped before an outcome was recorded"
            }
        }
    }
}
