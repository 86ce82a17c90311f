//! What the helper tells the reaper of a call, and what the reaper reports back.
//!
//! The launch goes down one pipe, the reports come up another as JSON lines. As long as the helper holds
//! its end of the first pipe the command may live; its end of file means: kill everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ending::Ending;

/// The most bytes of a launch; the helper refuses a longer command before it gets here.
pub const MAX_LAUNCH_BYTES: usize = 512 * 1024;

/// The longest line of a report; what is longer is not from our reaper.
pub const MAX_REPORT_BYTES: usize = 4096;

/// One command as the reaper starts it.
///
/// It travels through a pipe and not through arguments, so that no environment value ever stands in a
/// process list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The program and its arguments; never empty.
    pub argv: Vec<String>,
    /// A name or a number from the target's own `/etc/passwd`; the reaper's own user when absent.
    pub user: Option<String>,
    /// Where to start; the user's home when absent.
    pub cwd: Option<String>,
    /// Variables beside PATH, HOME, LANG and TERM, which they may replace.
    pub env: BTreeMap<String, String>,
}

/// One line from the reaper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The reaper runs and from now on nothing can escape it.
    Ready,
    /// The command runs.
    Started,
    /// The command ended, or could not be started.
    Ended(Ending),
}
