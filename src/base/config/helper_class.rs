//! The classes of the helper's operations.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a key of `helper.toml` enables. Each operation of the helper belongs to exactly one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperClass {
    /// Commands on the host.
    HostShell,
    /// Commands in containers.
    ContainerShell,
    /// Reading more about the host.
    HostReads,
    /// Listing and reading containers.
    LxcReads,
    /// Starting and stopping containers.
    LxcWrites,
    /// Creating and removing containers, their snapshots and definitions.
    LxcManage,
    /// Listing, reading and writing files in containers.
    ContainerFiles,
    /// Restarting the host and shutting it down.
    Power,
    /// Listing the host's updates.
    Updates,
    /// Installing updates.
    UpdatesApply,
    /// Reading the host's journal.
    HostLogs,
    /// Changing the host's systemd units.
    Units,
    /// Listing, searching and reading the host's files.
    HostFileReads,
    /// Writing the host's files.
    HostFileWrites,
    /// Changing the host's network.
    Network,
    /// Checking the host's disks for damage and repairing them.
    Storage,
    /// Deleting what a disk report found, to free disk space.
    Cleanup,
    /// Making and restoring backups.
    Backup,
    /// Deleting backups.
    BackupDelete,
    /// Listing and changing the SSH keys that may log in.
    SshKeys,
    /// Changing the host's settings.
    HostSettings,
    /// Sending mail to the owner.
    MailTo,
}

impl HelperClass {
    /// All classes, in the order of the file.
    pub const ALL: [Self; 22] = [
        Self::HostShell,
        Self::ContainerShell,
        Self::HostReads,
        Self::LxcReads,
        Self::LxcWrites,
        Self::LxcManage,
        Self::ContainerFiles,
        Self::Power,
        Self::Updates,
        Self::UpdatesApply,
        Self::HostLogs,
        Self::Units,
        Self::HostFileReads,
        Self::HostFileWrites,
        Self::Network,
        Self::Storage,
        Self::Cleanup,
        Self::Backup,
        Self::BackupDelete,
        Self::SshKeys,
        Self::HostSettings,
        Self::MailTo,
    ];

    /// Returns its name between programs. It is the key in the file, except where a key has more values than off
    /// and on.
    pub fn key(self) -> &'static str {
        match self {
            Self::HostShell => "host_shell",
            Self::ContainerShell => "container_shell",
            Self::HostReads => "host_reads",
            Self::LxcReads => "lxc_reads",
            Self::LxcWrites => "lxc_writes",
            Self::LxcManage => "lxc_manage",
            Self::ContainerFiles => "container_files",
            Self::Power => "power",
            Self::Updates => "updates",
            Self::UpdatesApply => "updates_apply",
            Self::HostLogs => "host_logs",
            Self::Units => "units",
            Self::HostFileReads => "host_file_reads",
            Self::HostFileWrites => "host_file_writes",
            Self::Network => "network",
            Self::Storage => "storage",
            Self::Cleanup => "cleanup",
            Self::Backup => "backup",
            Self::BackupDelete => "backup_delete",
            Self::SshKeys => "ssh_keys",
            Self::HostSettings => "host_settings",
            Self::MailTo => "mail_to",
        }
    }
}

/// Shows the owner the key in the file, with the value if the key has several.
impl fmt::Display for HelperClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UpdatesApply => "updates = \"apply\"",
            Self::BackupDelete => "backup = \"delete\"",
            other => other.key(),
        })
    }
}
