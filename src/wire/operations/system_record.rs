//! The files with a machine's records of logins, packages and kernel messages; the helper reads these and no others.

use serde::{Deserialize, Serialize};

/// The most bytes of a record in one answer: its end, which is the newest part.
pub const RECORD_BYTES: u32 = 512 * 1024;

/// A record of a machine, of the host or of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemRecord {
    /// Logins and logouts (utmp(5)).
    Logins,
    /// The same before the last rotation.
    OlderLogins,
    /// Failed logins.
    FailedLogins,
    /// The same before the last rotation.
    OlderFailedLogins,
    /// Messages of sshd, sudo and other programs that authenticate users, where syslog writes them.
    AuthMessages,
    /// The same before the last rotation.
    OlderAuthMessages,
    /// What dpkg installed, upgraded and removed.
    Packages,
    /// The same before the last rotation.
    OlderPackages,
    /// The same before the rotation before that, compressed with gzip.
    OldestPackages,
    /// The kernel's newest messages, of the host only.
    KernelMessages,
    /// The time zone, in which some of the others are written (tzfile(5)).
    TimeZone,
}

impl SystemRecord {
    /// Those that a container may have.
    pub const OF_CONTAINERS: [Self; 10] = [
        Self::Logins,
        Self::OlderLogins,
        Self::FailedLogins,
        Self::OlderFailedLogins,
        Self::AuthMessages,
        Self::OlderAuthMessages,
        Self::Packages,
        Self::OlderPackages,
        Self::OldestPackages,
        Self::TimeZone,
    ];

    /// Its absolute path.
    pub fn path(self) -> &'static str {
        match self {
            Self::Logins => "/var/log/wtmp",
            Self::OlderLogins => "/var/log/wtmp.1",
            Self::FailedLogins => "/var/log/btmp",
            Self::OlderFailedLogins => "/var/log/btmp.1",
            Self::AuthMessages => "/var/log/auth.log",
            Self::OlderAuthMessages => "/var/log/auth.log.1",
            Self::Packages => "/var/log/dpkg.log",
            Self::OlderPackages => "/var/log/dpkg.log.1",
            Self::OldestPackages => "/var/log/dpkg.log.2.gz",
            Self::KernelMessages => "/dev/kmsg",
            Self::TimeZone => "/etc/localtime",
        }
    }
}

/// The first line of an answer about a record; its bytes follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordHeader {
    /// Whether the file exists.
    pub exists: bool,
    /// The size of the whole file in bytes.
    pub size_bytes: u64,
    /// Where the part begins, in bytes; it goes up to the end of the file.
    pub offset: u64,
}
