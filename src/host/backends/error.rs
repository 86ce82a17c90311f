//! Errors of the backends, with messages for the caller.

use std::fmt;

use crate::helper_client::{HelperError, OperationRefusal, RefusalCode};

/// An error that is reported to the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendError {
    /// Its kind.
    pub kind: ErrorKind,
    /// What happened and usually what to do.
    pub message: String,
    /// What to do, if the message does not include it.
    pub hint: Option<String>,
    /// Whether the same call may succeed later.
    pub retry: bool,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The named object does not exist.
    NotFound,
    /// It exists but is not running, or is frozen.
    NotRunning,
    /// The helper, or a program it needs, is missing or busy.
    Unavailable,
    /// It is not allowed, or not in this way.
    Refused,
    /// The host failed to do it.
    Failed,
}

impl BackendError {
    /// Returns an error without a hint; a retry does not help.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            retry: false,
        }
    }
}

impl From<OperationRefusal> for BackendError {
    fn from(OperationRefusal { code, message }: OperationRefusal) -> Self {
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
    /// Logs the cause here: the caller gets only the part that helps.
    fn from(error: HelperError) -> Self {
        tracing::error!(cause = error.for_log(), "helper");
        Self {
            retry: error.retry_helps(),
            ..Self::new(ErrorKind::Unavailable, error.to_string())
        }
    }
}
