//! How an operation ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The payload of the last frame of every operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationEnd {
    /// The command exited with this status.
    Exited {
        /// The exit code, 0 to 255.
        code: i32,
    },
    /// A signal that the helper did not send ended the command.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// The helper killed the command with all its child processes.
    Killed {
        /// The reason.
        why: KillReason,
    },
    /// The operation was rejected before it began.
    Refused {
        /// The kind of error.
        code: RefusalCode,
        /// The error and its remedy in one sentence, for the caller.
        message: String,
    },
}

impl fmt::Display for OperationEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signalled { signal } => write!(f, "signal {signal}"),
            Self::Killed { why } => write!(f, "killed: {why:?}"),
            Self::Refused { code, message } => write!(f, "refused: {code:?}: {message}"),
        }
    }
}

/// Why the helper killed a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KillReason {
    /// The timeout expired.
    Timeout,
    /// It exceeded the output limit.
    Output,
    /// The caller cancelled it.
    Cancelled,
    /// The helper was stopped.
    Shutdown,
    /// The helper was killed, or the host went down; only for jobs.
    Lost,
    /// It exceeded its memory limit, and the kernel killed it.
    Memory,
    /// The call's reaper was killed or stopped, so its reports are not reliable.
    ReaperLost,
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
