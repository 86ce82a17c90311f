//! The classes that each thing belongs to which the root helper can do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What one key of the file switches: each thing that the helper does belongs to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelperClass {
    /// Commands on the host.
    HostShell,
    /// Commands in containers.
    ContainerShell,
    /// Looking at the host.
    HostReads,
    /// Looking at containers.
    LxcReads,
    /// Starting and stopping containers.
    LxcWrites,
    /// Making and removing containers, their snapshots and definitions.
    LxcManage,
    /// Listing, reading and writing files in containers.
    ContainerFiles,
    /// Restarting the box and switching it off.
    Power,
    /// Looking at the host's updates.
    Updates,
    /// Installing them.
    UpdatesApply,
    /// Reading the host's journal.
    HostLogs,
    /// Changing the host's units.
    Units,
    /// Listing, searching and reading the host's files.
    HostFileReads,
    /// Writing the host's files.
    HostFileWrites,
    /// Changing the host's network.
    Network,
    /// Looking for damage on the host's disks and repairing it.
    Storage,
    /// Making backups and bringing them back.
    Backup,
    /// Looking at and changing who may log in over SSH.
    SshKeys,
    /// Changing the host's settings.
    HostSettings,
    /// Sending mail to the owner.
    MailTo,
}

impl HelperClass {
    /// Every class, in the order of the file.
    pub const ALL: [Self; 20] = [
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
        Self::Backup,
        Self::SshKeys,
        Self::HostSettings,
        Self::MailTo,
    ];

    /// What it is called between programs: its key in the file, but where a key has more values than off and on.
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
            Self::Backup => "backup",
            Self::SshKeys => "ssh_keys",
            Self::HostSettings => "host_settings",
            Self::MailTo => "mail_to",
        }
    }
}

/// What the owner reads of it: the key in the file, and the value where that needs one of several.
impl fmt::Display for HelperClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UpdatesApply => "updates = \"apply\"",
            other => other.key(),
        })
    }
}
