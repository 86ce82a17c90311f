//! Why an operation does not start, as a message for the caller.

use std::fmt;

use gatewren_wire::operations::{OperationEnd, RefusalCode};

/// An obstacle and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRefusal {
    code: RefusalCode,
    message: String,
}

impl OperationRefusal {
    /// Creates a refusal. The message states the obstacle and its remedy in one sentence.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// A refusal because something on the host failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(RefusalCode::Failed, message)
    }

    /// A refusal because the request cannot be run.
    pub fn bad_command(message: impl Into<String>) -> Self {
        Self::new(RefusalCode::BadCommand, message)
    }

    /// Returns the message.
    pub fn words(&self) -> &str {
        &self.message
    }

    /// Returns the code.
    pub fn code(&self) -> RefusalCode {
        self.code
    }

    /// Returns whether it happened before anything was started.
    pub fn is_of_the_request(&self) -> bool {
        self.code != RefusalCode::Failed
    }
}

impl fmt::Display for OperationRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<OperationRefusal> for OperationEnd {
    fn from(refusal: OperationRefusal) -> Self {
        Self::Refused {
            code: refusal.code,
            message: refusal.message,
        }
    }
}
