//! What of the machine itself only root sees as it is: a sandboxed process has mounts of its own and no clock.

use serde::{Deserialize, Serialize};

/// What the helper sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// The table of mounts, as `/proc/self/mountinfo` has it (proc(5)).
    pub mountinfo: String,
    /// Whether something keeps the clock right; nothing where the kernel may not be asked.
    pub clock_synchronised: Option<bool>,
}
