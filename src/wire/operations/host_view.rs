//! Facts of the host that only root can see: a sandboxed process has its own mounts and no access to the clock.

use serde::{Deserialize, Serialize};

/// The host as the helper sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// The mount table, in the format of `/proc/self/mountinfo` (proc(5)).
    pub mountinfo: String,
    /// Whether time synchronisation is active; absent where the kernel does not allow the query.
    pub clock_synchronised: Option<bool>,
}
