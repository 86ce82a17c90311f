//! Why a backend could not do what it was asked, in words for the caller.

use std::fmt;

use crate::helper_client::{HelperError, RefusalCode};

/// A failure that the caller is told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendError {
    /// What kind it is.
    pub kind: ErrorKind,
    /// What happened, and mostly what to do.
    pub message: String,
    /// What to do, where the message does not say it.
    pub hint: Option<String>,
    /// Whether the same call may go well later.
    pub retry: bool,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was named does not exist.
    NotFound,
    /// It exists and does not run, or is frozen.
    NotRunning,
    /// The helper, or a program it needs, is not there or has no time.
    Unavailable,
    /// It may not be done, or not in this way.
    Refused,
    /// The machine failed at it.
    Failed,
}

impl BackendError {
    /// A failure whose message says it all, and that a retry does not help.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            retry: false,
        }
    }

    /// What the helper refused, with its own words.
    pub fn refused(code: RefusalCode, message: String) -> Self {
        let kind = match code {
            RefusalCode::NoSuchContainer | RefusalCode::NoSuchJob => ErrorKind::NotFound,
            RefusalCode::NotRunning | RefusalCode::Frozen => ErrorKind::NotRunning,
            RefusalCode::MissingProgram | RefusalCode::NotRoot | RefusalCode::Busy => {
                ErrorKind::Unavailable
            }
            RefusalCode::Forbidden | RefusalCode::BadCommand => ErrorKind::Refused,
            RefusalCode::Failed => ErrorKind::Failed,
        };
        Self {
            retry: code == RefusalCode::Busy,
            ..Self::new(kind, message)
        }
    }
}

impl fmt::Display for BackendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BackendError {}

impl From<HelperError> for BackendError {
    /// The cause goes to the log here, for the caller hears only what helps.
    fn from(error: HelperError) -> Self {
        tracing::error!(cause = error.for_log(), "helper");
        Self {
            retry: error.retry_helps(),
            ..Self::new(ErrorKind::Unavailable, error.to_string())
        }
    }
}
