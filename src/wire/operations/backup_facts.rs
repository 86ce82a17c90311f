//! Information about backups and backup targets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    backup::{BackupId, TargetName},
    container_ref::ContainerRef,
};

/// The kind of a backup target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A directory.
    Directory,
    /// A disk that is mounted for backups.
    Disk,
    /// A share of another machine (SMB) that is mounted for backups.
    Share,
    /// A restic repository.
    Restic,
}

/// A backup target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupTarget {
    /// Its name.
    pub target: TargetName,
    /// The kind of target.
    pub kind: TargetKind,
    /// Its directory, device or share; shown only to agents with access to the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Whether the owner configured it; such a target cannot be removed here.
    pub of_the_owner: bool,
    /// Whether it can be used now.
    pub ready: bool,
    /// Why it cannot be used, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// Its free space in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
}

/// The manifest of a backup, written last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the tools take it as `backup`")]
pub struct Backup {
    /// Its id.
    pub backup: BackupId,
    /// The target that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetName>,
    /// The container that was backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<ContainerRef>,
    /// The host directory or file that was backed up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// When it was made.
    pub made: String,
    /// The host name of the machine that made it.
    pub host: String,
    /// The archive's size in bytes; for restic, the bytes that a new backup added to the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive_bytes: Option<u64>,
    /// The number of files and directories in it; unknown for restic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// Whether the container was running at that time.
    #[serde(default)]
    pub was_running: bool,
    /// Whether the container was frozen during the backup.
    #[serde(default)]
    pub was_frozen: bool,
    /// Whether files changed while they were read; such files may be half old and half new.
    #[serde(default)]
    pub changed_meanwhile: bool,
    /// Data of a container of Docker or Podman that is not in it, with the reasons; not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_included: Vec<String>,
    /// How it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ArchiveFormat>,
}

/// How a backup is stored; not sent to clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArchiveFormat {
    /// 1: a tar archive compressed with zstd, with the container's definition next to it; 2: the same files in a
    /// restic snapshot. The definition of a container of Docker or Podman is what its engine's `inspect` answers.
    pub version: u32,
    /// The archive's SHA-256 in hexadecimal digits; empty for restic, which has its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// The SHA-256 of the container's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_sha256: Option<String>,
    /// The path of the container's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Its permissions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_mode: Option<u32>,
    /// What a backup of a container of Docker or Podman consists of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<BackupPart>,
    /// The id of that container's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// The kind of a part of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BackupPartKind {
    /// The files that the container changed in those of its image.
    Layer,
    /// A volume.
    Volume,
    /// A directory or file of the host.
    Bind,
}

/// A part of a backup of a container of Docker or Podman.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BackupPart {
    /// What it is.
    pub kind: BackupPartKind,
    /// Its path in the archive, such as `volumes/data`.
    pub path: String,
    /// Where it is mounted in the container; `/` for the layer.
    pub destination: String,
}

/// The result of restoring a container of Docker or Podman.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RestoredContainer {
    /// Parts of the backup that were left as they are, with the reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_restored: Vec<String>,
}

/// The answer to creating a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CreatedBackup {
    /// The backup.
    #[serde(flatten)]
    pub made: Backup,
    /// The older backups of the same subject that `keep` deleted, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<BackupId>,
    /// Why older backups that `keep` does not keep still exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_deleted: Option<String>,
}

/// A backup that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedBackup {
    /// Its id.
    pub backup: BackupId,
    /// The target that held it.
    pub target: TargetName,
}

/// A list of backups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackupList {
    /// The backups, the newest first.
    pub backups: Vec<Backup>,
    /// Whether the list was cut.
    pub truncated: bool,
    /// Targets that could not be read, with the reason.
    pub unseen: Vec<UnreadableTarget>,
}

/// A target that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnreadableTarget {
    /// The target's name.
    pub target: TargetName,
    /// The reason, and what to do.
    pub obstacle: String,
}

/// The result of verifying a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedBackup {
    /// The backup's id.
    pub backup: BackupId,
    /// The target that holds it.
    pub target: TargetName,
    /// Whether every byte is unchanged and the archive is readable to its end.
    pub whole: bool,
    /// The problem, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The number of files and directories found in it.
    pub entries: u64,
    /// The archive's size in bytes; for restic, the bytes that were read.
    pub archive_bytes: u64,
}
