//! How an operation ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The last frame of every operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The command ended by itself with this status.
    Exited {
        /// Its exit code, 0 to 255.
        code: i32,
    },
    /// A signal that was not ours ended the command.
    Signalled {
        /// The signal's number.
        signal: i32,
    },
    /// We ended it, with everything that it had started.
    Killed {
        /// Why.
        why: KillReason,
    },
    /// It never began.
    Refused {
        /// What kind of obstacle.
        code: RefusalCode,
        /// The obstacle and its remedy in one sentence, for the caller.
        message: String,
    },
}

impl fmt::Display for Ending {
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
    /// Its time was up.
    Timeout,
    /// It printed more than it was allowed.
    Output,
    /// The caller asked for it.
    Cancelled,
    /// The helper was told to stop.
    Shutdown,
    /// The helper itself was killed, or the box went down: of a job only.
    Lost,
    /// It used up the memory that it may have; the kernel killed it.
    Memory,
    /// The call's reaper was killed or stopped, so that nothing it reported is certain.
    ReaperLost,
}

/// Why an operation never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalCode {
    /// The helper's own policy does not have this kind of operation.
    Forbidden,
    /// No job of this owner has this id.
    NoSuchJob,
    /// No container has this name.
    NoSuchContainer,
    /// The container is not running.
    NotRunning,
    /// The container is frozen.
    Frozen,
    /// A program that it needs is not installed.
    MissingProgram,
    /// It needs root and the helper is not root.
    NotRoot,
    /// The user, the directory or the program named by the caller does not exist.
    BadCommand,
    /// The helper runs as many operations as it may.
    Busy,
    /// The machine refused: the message says what.
    Failed,
}
