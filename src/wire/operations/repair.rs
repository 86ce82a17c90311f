//! What can be checked for damage, and the result of a check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::{DiskName, PoolName};

/// The target of a check and repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRepair {
    /// The file system that is mounted at this path: btrfs is checked now; ext2, ext3 and ext4 at the next boot.
    Mounted(String),
    /// The file system on an unmounted disk or partition; checked now.
    Disk(DiskName),
    /// A RAID array (md); the check continues after the answer.
    Array(DiskName),
    /// A ZFS pool; the check continues after the answer.
    Pool(PoolName),
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepairResult {
    /// The outcome.
    pub outcome: RepairOutcome,
    /// The end of the program's output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub report: String,
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairOutcome {
    /// No damage was found.
    Sound,
    /// Damage was found and completely repaired.
    Repaired,
    /// Damage was found that could not be repaired.
    Damaged,
    /// The check is scheduled for the next boot.
    Planned,
    /// The check is in progress; `disk_health` shows its result.
    Begun,
}
