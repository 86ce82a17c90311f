//! What can be looked through for damage, and what came of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::device::{DiskName, PoolName};

/// What is looked through, and repaired as far as that can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRepair {
    /// The file system that is mounted in this place: one of btrfs now, one of ext2, ext3 and ext4 when the box boots
    /// next.
    Mounted(String),
    /// The file system on a disk or partition that is not mounted, now.
    Disk(DiskName),
    /// Disks that work as one (md): it goes on after the answer.
    Array(DiskName),
    /// A pool of ZFS: it goes on after the answer.
    Pool(PoolName),
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repaired {
    /// How it stands.
    pub outcome: RepairOutcome,
    /// The end of what the program said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub report: String,
}

/// How what was looked through stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepairOutcome {
    /// No damage was found.
    Sound,
    /// Damage was found, and all of it repaired.
    Repaired,
    /// There is damage that could not be repaired.
    Damaged,
    /// It is looked through when the box boots next.
    Planned,
    /// It is being looked through; `disk_health` tells what was found.
    Begun,
}
