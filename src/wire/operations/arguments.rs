//! Arguments of operations that have no module of their own.

use serde::{Deserialize, Serialize};

/// A request for the disk usage of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDiskUsage {
    /// Its absolute path.
    pub path: String,
    /// How many levels below it are listed separately.
    pub depth: u8,
}

/// When the host goes down, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerPlan {
    /// Seconds from now; raised to a minimum that lets the answer reach the caller.
    pub delay_s: u32,
    /// The message to logged-in users.
    #[serde(default)]
    pub reason: Option<String>,
}
