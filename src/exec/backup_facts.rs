//! What is told of backups, and of where they are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    backup::{BackupId, TargetName},
    name::ContainerName,
};

/// How a target keeps its backups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A directory.
    Directory,
    /// A disk that is mounted for it.
    Disk,
    /// A share of another machine's (SMB) that is mounted for it.
    Share,
    /// A repository of restic's.
    Restic,
}

/// Where backups may be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupTarget {
    /// Its name.
    pub target: TargetName,
    /// How it keeps them.
    pub kind: TargetKind,
    /// Its directory, device or share; told to those who reach the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Whether the owner of this box has named it, so that it cannot be removed here.
    pub of_the_owner: bool,
    /// Whether it can be used now.
    pub ready: bool,
    /// Why not, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// What is free on it, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

/// What a backup says of itself: its manifest, written when all else of it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the tools take it as `backup`")]
pub struct Backup {
    /// Its id.
    pub backup: BackupId,
    /// The target that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetName>,
    /// The container that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerName>,
    /// The directory or file of the host that it is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When it was made.
    pub made: String,
    /// The host name of the box that made it.
    pub host: String,
    /// The archive's size in bytes; of restic's, what a new one has added to the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_bytes: Option<u64>,
    /// How many files and directories are in it; restic does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Whether the container was running then.
    #[serde(default)]
    pub was_running: bool,
    /// Whether its processes stood still meanwhile.
    #[serde(default)]
    pub was_frozen: bool,
    /// Whether files changed while they were read, so that they may be half old and half new.
    #[serde(default)]
    pub changed_meanwhile: bool,
    /// What its bytes and places are known by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ArchiveFormat>,
}

/// How a backup is stored; not told to clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveFormat {
    /// 1: a tar archive compressed with zstd, and beside it the container's definition; 2: the same files in a snapshot of
    /// restic's.
    pub version: u32,
    /// The archive's SHA-256, in hexadecimal digits; nothing where restic has its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The same of the container's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_sha256: Option<String>,
    /// Where the container's directory was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Its permissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_mode: Option<u32>,
}

/// The backups that there are.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupList {
    /// The newest first.
    pub backups: Vec<Backup>,
    /// Whether there are more than are told of.
    pub truncated: bool,
    /// Targets that could not be looked at, with the reason.
    pub unseen: Vec<UnseenTarget>,
}

/// A target that could not be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnseenTarget {
    /// Which.
    pub target: TargetName,
    /// Why, and what to do.
    pub obstacle: String,
}

/// What came of reading a backup from beginning to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    /// Which.
    pub backup: BackupId,
    /// Where.
    pub target: TargetName,
    /// Whether every byte is as it was written, and the archive can be read to its end.
    pub whole: bool,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How many files and directories were found in it.
    pub entries: u64,
    /// The archive's size in bytes; of restic's, what was read of it.
    pub archive_bytes: u64,
}
