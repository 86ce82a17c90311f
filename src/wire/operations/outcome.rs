//! How an operation ended.

use std::fmt;

use serde::{Deserialize, Serialize};

use gatewren_base::sys::Exit;

use super::refusal::OperationRefusal;

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
    /// The operation was rejected before it began, or something on the host failed.
    Refused(OperationRefusal),
}

impl OperationEnd {
    /// The operation succeeded; one without a command ends like this too.
    pub const SUCCESS: Self = Self::Exited { code: 0 };

    /// The exit code, if the command exited.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Exited { code } => Some(*code),
            _ => None,
        }
    }

    /// The number of the signal that ended the command, if the helper did not send it.
    pub fn signal(&self) -> Option<i32> {
        match self {
            Self::Signalled { signal } => Some(*signal),
            _ => None,
        }
    }

    /// Why the helper killed the command, if it did.
    pub fn kill_reason(&self) -> Option<KillReason> {
        match self {
            Self::Killed { why } => Some(*why),
            _ => None,
        }
    }
}

impl From<Exit> for OperationEnd {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited { code },
            Exit::Signal(signal) => Self::Signalled { signal },
        }
    }
}

impl From<OperationRefusal> for OperationEnd {
    fn from(refusal: OperationRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl fmt::Display for OperationEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "exit code {code}"),
            Self::Signalled { signal } => write!(f, "signal {signal}"),
            Self::Killed { why } => write!(f, "killed: {why}"),
            Self::Refused(OperationRefusal { code, message }) => {
                write!(f, "refused: {code:?}: {message}")
            }
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

impl KillReason {
    /// The reason in a word, as the fields of tools have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Output => "output",
            Self::Cancelled => "cancelled",
            Self::Shutdown => "shutdown",
            Self::Lost => "lost",
            Self::Memory => "memory",
            Self::ReaperLost => "reaper lost",
        }
    }
}

impl fmt::Display for KillReason {
    /// The reason as a clause, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "its timeout expired",
            Self::Output => "it printed more than its limit",
            Self::Cancelled => "it was cancelled",
            Self::Shutdown => "the helper was stopped",
            Self::Lost => "the helper was killed or the host went down",
            Self::Memory => "it exceeded its memory limit",
            Self::ReaperLost => "the process that watches it, its reaper, was killed or stopped",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_names_its_reason_in_words() {
        let end = |why| OperationEnd::Killed { why }.to_string();
        assert_eq!(end(KillReason::Timeout), "killed: its timeout expired");
        assert_eq!(
            end(KillReason::ReaperLost),
            "killed: the process that watches it, its reaper, was killed or stopped"
        );
    }
}
