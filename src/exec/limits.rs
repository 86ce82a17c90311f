//! How far one operation may go; the helper has ceilings of its own above these.

use serde::{Deserialize, Serialize};

/// The bounds of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Milliseconds until the operation is killed with `timeout`.
    pub timeout_ms: u64,
    /// Bytes of stdout and stderr together until it is killed with `output`.
    pub output_bytes: u64,
    /// Processes it may have at once, where the kernel's controller is there.
    pub processes: u32,
}
