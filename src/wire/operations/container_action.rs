//! Operations on one container other than start and stop.

use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass::{ContainerFiles, LxcManage, LxcReads, LxcWrites};

use super::container_paths::InsidePath;
use super::container_ref::ContainerRef;
use super::container_storage::StoreName;
use super::host_setting::HostName;
use super::log_query::LogCursor;
use super::operation_facts::{OperationFacts, TimeClass, changes, reads};
use super::snapshot_name::SnapshotName;
use super::system_record::SystemRecord;

/// An operation on a container: a change or a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContainerAction {
    /// Freeze all its processes.
    Freeze {},
    /// Resume its processes.
    Unfreeze {},
    /// Set whether it starts at boot.
    Autostart {
        /// Whether it starts at boot.
        on: bool,
    },
    /// Print the facts about its image, as JSON ([`ContainerImage`](super::engine_facts::ContainerImage)). A container
    /// of LXC has none.
    Image {},
    /// Change its definition; the previous version is kept next to it.
    Configure {
        /// The changes.
        changes: DefinitionChanges,
    },
    /// Print its snapshots, a JSON object ([`SnapshotFacts`]) a line.
    Snapshots {},
    /// Take a snapshot of a stopped container, and print the snapshot's name.
    Snapshot {
        /// The purpose of the snapshot.
        #[serde(default)]
        comment: Option<String>,
    },
    /// Restore a stopped container from a snapshot.
    Restore {
        /// The snapshot.
        snapshot: SnapshotName,
    },
    /// Delete a snapshot.
    Forget {
        /// The snapshot.
        snapshot: SnapshotName,
    },
    /// Copy a stopped container.
    Clone {
        /// The copy's name.
        to: ContainerRef,
    },
    /// Print where its files are and where they could be moved, as JSON
    /// ([`ContainerStorage`](super::container_storage::ContainerStorage)).
    Storage {},
    /// Stop it, move its files, start it again if it ran, and print the result as JSON
    /// ([`MovedContainer`](super::container_storage::MovedContainer)).
    Move {
        /// The place.
        to: StoreName,
        /// Seconds to wait for an orderly shutdown; 0 kills at once.
        grace_s: u32,
    },
    /// Delete the copy that the last move left.
    RemoveOldCopy {},
    /// Delete the container and all its data.
    Destroy {
        /// Whether a running container is stopped first.
        force: bool,
        /// Whether its snapshots are deleted too; if not, a container with snapshots is kept.
        snapshots: bool,
    },
    /// Print a part of one of its log files: a line of JSON ([`FileExcerpt`]), then the bytes.
    Log {
        /// The log.
        log: LogFile,
        /// Where the part begins, in bytes; when absent, the last `bytes` bytes of the file are printed.
        #[serde(default)]
        offset: Option<u64>,
        /// The maximum size of the part in bytes.
        bytes: u32,
    },
    /// Print the entries of a directory in it, a JSON object ([`InsideEntry`](super::container_paths::InsideEntry)) a line,
    /// sorted by name.
    ListFiles {
        /// The directory.
        path: InsidePath,
        /// Print only names that sort after this one.
        #[serde(default)]
        after: Option<String>,
        /// The maximum number of entries.
        limit: u32,
    },
    /// Print a part of a file in it: a line of JSON ([`FileExcerpt`]), then the bytes.
    ReadFile {
        /// The file.
        path: InsidePath,
        /// Where the part begins, in bytes.
        offset: u64,
        /// The maximum size of the part in bytes.
        bytes: u32,
    },
    /// Write a file in it atomically.
    WriteFile {
        /// The file.
        path: InsidePath,
        /// The new content, in base64.
        content: String,
        /// The permissions of a new file, or the new permissions of an existing one.
        #[serde(default)]
        mode: Option<u32>,
        /// As for a command in the container.
        #[serde(default)]
        on_host: bool,
    },
    /// Print the end of one of its records of logins or packages, in the same form as those of the host.
    Record {
        /// The record.
        record: SystemRecord,
    },
    /// Print which of these records it certainly lacks, as a JSON list.
    MissingRecords {},
    /// Print what a container of Docker or Podman printed: a line of JSON ([`PrintedHeader`]), then a JSON object
    /// ([`PrintedLine`]) a line, in the order of the log.
    Printed {
        /// The maximum number of lines.
        lines: u32,
        /// Only lines after this one, the first of them if there are too many.
        #[serde(default)]
        after: Option<LogCursor>,
        /// Only lines before this one.
        #[serde(default)]
        before: Option<LogCursor>,
    },
}

/// The first line of an answer about what a container printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedHeader {
    /// Whether lines were left out: older ones, or after a cursor newer ones.
    pub has_more: bool,
}

/// A line that a container printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintedLine {
    /// Its position.
    pub cursor: LogCursor,
    /// Its time in milliseconds since 1970.
    pub time_ms: u64,
    /// Whether it was printed to stderr.
    pub is_stderr: bool,
    /// The line.
    pub text: String,
    /// Whether its end was left out.
    pub is_cut: bool,
}

/// Changes to a container's definition; absent values stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefinitionChanges {
    /// The container's host name.
    pub hostname: Option<HostName>,
    /// The memory limit in bytes; 0 removes it.
    pub memory_limit_bytes: Option<u64>,
    /// The CPU limit in percent of one CPU; 0 removes it.
    pub cpu_limit_percent: Option<u32>,
    /// The limit of processes; 0 removes it.
    pub processes_limit: Option<u32>,
    /// Seconds to wait after its start before the next container is started at boot; 0 for none.
    pub start_delay_s: Option<u32>,
    /// Its priority in the start order at boot, the highest first; 0 for none.
    pub start_order: Option<u32>,
}

/// A log file on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFile {
    /// The container's console output, if its definition enables that log.
    Console,
    /// LXC's own log of the container, mostly about its starts.
    Lxc,
}

/// The position of a part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileExcerpt {
    /// The size of the whole file in bytes.
    pub size_bytes: u64,
    /// Where the part begins, in bytes.
    pub offset: u64,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFacts {
    /// The snapshot's name.
    pub name: SnapshotName,
    /// When it was made, RFC 3339; absent for one that was never finished.
    #[serde(default)]
    pub made: Option<String>,
    /// The purpose of the snapshot.
    #[serde(default)]
    pub comment: Option<String>,
}

impl ContainerAction {
    /// The facts of the operation: its row in the table.
    pub fn facts(&self) -> OperationFacts<'_> {
        let copies = |name| changes(name, LxcManage).takes(TimeClass::Copy);
        match self {
            Self::Freeze {} => changes("container_freeze", LxcWrites),
            Self::Unfreeze {} => changes("container_unfreeze", LxcWrites),
            Self::Autostart { .. } => changes("container_autostart", LxcWrites),
            Self::Image {} => reads("container_image", LxcReads),
            Self::Configure { .. } => changes("container_configure", LxcManage),
            Self::Snapshots {} => reads("container_snapshots", LxcReads),
            Self::Snapshot { .. } => copies("container_snapshot"),
            Self::Restore { .. } => copies("container_restore"),
            Self::Forget { .. } => copies("container_forget"),
            Self::Clone { .. } => copies("container_clone"),
            Self::Destroy { .. } => copies("container_destroy"),
            Self::Storage {} => reads("container_storage", LxcReads),
            Self::Move { .. } => changes("container_move", LxcManage).takes(TimeClass::Backup),
            Self::RemoveOldCopy {} => copies("container_remove_old_copy"),
            Self::Log { .. } => reads("container_log", LxcReads),
            Self::Record { .. } => reads("container_record", LxcReads),
            Self::MissingRecords {} => reads("container_missing_records", LxcReads),
            Self::Printed { .. } => reads("container_printed", LxcReads),
            Self::ListFiles { .. } => reads("container_list_files", ContainerFiles),
            Self::ReadFile { .. } => reads("container_read_file", ContainerFiles),
            Self::WriteFile { .. } => changes("container_write_file", ContainerFiles),
        }
    }
}
