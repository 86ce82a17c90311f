//! What can be done to one container beside starting and stopping it, and what of it can be looked at.

use serde::{Deserialize, Serialize};

use super::{
    host_setting::HostName, inside::InsidePath, name::ContainerName, snapshot_name::SnapshotName,
};

/// One thing that is done to a container, or looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Deed {
    /// Hold all its processes.
    Freeze {},
    /// Let them go on.
    Unfreeze {},
    /// Have it start with the box, or not.
    Autostart {
        /// Whether it does.
        on: bool,
    },
    /// Change its definition; the one before stays beside it.
    Configure {
        /// What becomes different.
        changes: Changes,
    },
    /// Print its snapshots, a JSON object ([`SnapshotFacts`]) a line.
    Snapshots {},
    /// Keep a copy of a stopped one, and print the copy's name.
    Snapshot {
        /// What it is kept for.
        #[serde(default)]
        comment: Option<String>,
    },
    /// Bring a stopped one back to a snapshot.
    Restore {
        /// Which.
        snapshot: SnapshotName,
    },
    /// Delete a snapshot.
    Forget {
        /// Which.
        snapshot: SnapshotName,
    },
    /// Copy a stopped one.
    Clone {
        /// The copy's name.
        to: ContainerName,
    },
    /// Take it away with all that is in it.
    Destroy {
        /// Whether one that runs is stopped for it.
        force: bool,
        /// Whether its snapshots go too; one that has some stays otherwise.
        snapshots: bool,
    },
    /// Print a part of a log file of it: a line of JSON ([`Excerpt`]), then the bytes.
    Log {
        /// Which log.
        log: LogFile,
        /// Where the part begins; at the end, as many bytes before it, when absent.
        #[serde(default)]
        offset: Option<u64>,
        /// The most bytes of it.
        bytes: u32,
    },
    /// Print what a directory in it holds, a JSON object ([`InsideEntry`](super::inside::InsideEntry)) a line,
    /// sorted by name.
    ListFiles {
        /// The directory.
        path: InsidePath,
        /// Only names behind this one.
        #[serde(default)]
        after: Option<String>,
        /// The most entries.
        limit: u32,
    },
    /// Print a part of a file in it: a line of JSON ([`Excerpt`]), then the bytes.
    ReadFile {
        /// The file.
        path: InsidePath,
        /// Where the part begins.
        offset: u64,
        /// The most bytes of it.
        bytes: u32,
    },
    /// Write a file in it, whole or not at all.
    WriteFile {
        /// The file.
        path: InsidePath,
        /// What it holds then, in base64.
        content: String,
        /// Its permissions, if it is new or they are to change.
        #[serde(default)]
        mode: Option<u32>,
    },
}

/// What becomes different in a definition; what is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Changes {
    /// Its own host name.
    pub hostname: Option<HostName>,
    /// The most memory, in bytes; 0 for any.
    pub memory_limit_bytes: Option<u64>,
    /// The most processor time, in percent of one processor; 0 for any.
    pub cpu_limit_percent: Option<u32>,
    /// The most processes; 0 for any number.
    pub processes_limit: Option<u32>,
    /// Seconds to wait after its start before the next container starts with the box; 0 for none.
    pub start_delay_s: Option<u32>,
    /// Its place among those that start with the box, the highest first; 0 for none.
    pub start_order: Option<u32>,
}

/// A log that is a file of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFile {
    /// What was written to the container's console, where its definition has that kept.
    Console,
    /// What LXC says of it, mostly of its starts.
    Lxc,
}

/// Where a part of a file is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Excerpt {
    /// The whole file.
    pub size_bytes: u64,
    /// Where the part begins.
    pub offset: u64,
}

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFacts {
    /// Its name.
    pub name: SnapshotName,
    /// When it was made, as LXC writes it: `2026:11:22 15:51:20`, in the host's time zone; absent for one that
    /// was never finished.
    #[serde(default)]
    pub made: Option<String>,
    /// What it is kept for.
    #[serde(default)]
    pub comment: Option<String>,
}

impl Deed {
    /// Its name, as in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Freeze {} => "container_freeze",
            Self::Unfreeze {} => "container_unfreeze",
            Self::Autostart { .. } => "container_autostart",
            Self::Configure { .. } => "container_configure",
            Self::Snapshots {} => "container_snapshots",
            Self::Snapshot { .. } => "container_snapshot",
            Self::Restore { .. } => "container_restore",
            Self::Forget { .. } => "container_forget",
            Self::Clone { .. } => "container_clone",
            Self::Destroy { .. } => "container_destroy",
            Self::Log { .. } => "container_log",
            Self::ListFiles { .. } => "container_list_files",
            Self::ReadFile { .. } => "container_read_file",
            Self::WriteFile { .. } => "container_write_file",
        }
    }

    /// Whether it changes nothing.
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
            Self::Snapshots {} | Self::Log { .. } | Self::ListFiles { .. } | Self::ReadFile { .. }
        )
    }

    /// Whether it copies or removes as much as there is, which takes its time.
    pub fn is_long(&self) -> bool {
        matches!(
            self,
            Self::Snapshot { .. }
                | Self::Restore { .. }
                | Self::Forget { .. }
                | Self::Clone { .. }
                | Self::Destroy { .. }
        )
    }
}
