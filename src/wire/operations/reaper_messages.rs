//! Messages between the helper and the reaper of a call.
//!
//! The helper sends the launch through one pipe; the reaper sends its reports through another, as JSON lines. The
//! command may run while the helper holds its end of the first pipe open. End of file on it means: kill everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::outcome::OperationEnd;

/// The maximum size of a launch in bytes; the helper rejects a longer command earlier.
pub const MAX_LAUNCH_BYTES: usize = 512 * 1024;

/// The maximum length of a report line; the helper's own reaper never sends a longer one.
pub const MAX_REPORT_BYTES: usize = 4096;

/// A command that the reaper is to start.
///
/// It is sent through a pipe and not in arguments, so that no environment value is ever visible in a process list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaperLaunch {
    /// The program and its arguments; never empty.
    pub argv: Vec<String>,
    /// A name or number from the target's own `/etc/passwd`; the reaper's own user when absent.
    pub user: Option<String>,
    /// The working directory; the user's home when absent.
    pub cwd: Option<String>,
    /// Variables in addition to PATH, HOME, LANG and TERM, which they may override.
    pub env: BTreeMap<String, String>,
    /// Whether the command also gets the reaper's own variables and, if no directory is named, its directory: those that
    /// the container sets for its programs.
    #[serde(default)]
    pub inherits: bool,
}

/// A report line from the reaper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReaperReport {
    /// The reaper is ready: from now on no child process can escape it.
    Ready,
    /// The command was started.
    Started,
    /// The command ended, or could not be started.
    Ended(OperationEnd),
}
