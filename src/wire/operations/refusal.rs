//! Why an operation was rejected, as a message for the caller.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why an operation is rejected or failed on the host, as a message for the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationRefusal {
    /// The kind of error.
    pub code: RefusalCode,
    /// The error and its remedy in one sentence, for the caller.
    pub message: String,
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

/// Why an operation was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The helper's own policy does not allow this kind of operation.
    Forbidden,
    /// This owner has no job with this id.
    NoSuchJob,
    /// No container has this name.
    NoSuchContainer,
    /// The container is not running.
    NotRunning,
    /// The container is frozen.
    Frozen,
    /// A required program is not installed.
    MissingProgram,
    /// The operation needs root, and the helper is not root.
    NotRoot,
    /// The caller's user, directory or program does not exist.
    BadCommand,
    /// The helper's limit of concurrent operations is reached.
    Busy,
    /// The operation failed on the host; the message states the cause.
    Failed,
}
