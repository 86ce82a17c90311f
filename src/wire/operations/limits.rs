//! The limits of one operation; the helper enforces its own maximums above them.

use serde::{Deserialize, Serialize};

/// The limits of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationLimits {
    /// Milliseconds until the operation is killed with `timeout`.
    pub timeout_ms: u64,
    /// Bytes of stdout and stderr together until the operation is killed with `output`.
    pub output_bytes: u64,
    /// The maximum number of concurrent processes, where the kernel's controller is available.
    pub processes: u32,
}
