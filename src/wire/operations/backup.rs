//! Backups: their names, their subjects and the operations on them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_base::config::HelperClass;

use super::backup_keep::BackupKeep;
use super::container_ref::ContainerRef;
use super::operation_facts::{OperationFacts, TimeClass, changes, reads};
use super::text_type::{InvalidText, text_type};

text_type!(
    /// The name of a backup target: 1 to 32 of `a-z 0-9 _ -`, beginning with a letter or a digit. It is never parsed
    /// as an option or a path.
    TargetName,
    { "pattern": "^[a-z0-9][a-z0-9_-]{0,31}$" },
    |name| {
        let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let begins_well = name.bytes().next().is_some_and(small);
        begins_well && name.len() <= 32 && name.bytes().all(|b| small(b) || b"_-".contains(&b))
    },
    "a backup target's name is 1 to 32 lowercase letters, digits, '_' and '-', and begins with a letter or a digit"
);

/// The id of a backup: the subject, `@` and the time, such as `web@2026-07-28T09-30-00.000Z` or
/// `docker:web@2026-07-28T09-30-00.000Z`. Ids of host backups begin with `_host`, which no container name can. The last
/// `@` divides it, because a reference to a container may have one too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "", extend("pattern" = ID_PATTERN))]
pub struct BackupId {
    container: Option<ContainerRef>,
    stamp: String,
}

const ID_PATTERN: &str = "^(_host|[A-Za-z0-9][A-Za-z0-9._-]{0,63}|\
    (docker|podman):[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[A-Za-z0-9][A-Za-z0-9._-]{0,63})?)@[0-9A-Za-z.-]{8,32}$";

/// The subject part of the id of a host backup.
const HOST: &str = "_host";

/// What stands for `:` in the name of a backup's directory: FAT allows no `:`, and no reference to a container has a
/// `+`.
const FILE_COLON: char = '+';

/// The shortest and the longest time in an id, in bytes.
const STAMP_BYTES: std::ops::RangeInclusive<usize> = 8..=32;

impl BackupId {
    /// Creates the id of a backup of a container, or of the host if `None`; `made` is an RFC 3339 time.
    pub fn new(container: Option<ContainerRef>, made: &str) -> Self {
        let stamp = made.replace(':', "-");
        Self { container, stamp }
    }

    /// The container that was backed up; `None` for the host.
    pub fn container(&self) -> Option<&ContainerRef> {
        self.container.as_ref()
    }

    /// Returns the id with another container.
    #[must_use]
    pub fn of(self, container: ContainerRef) -> Self {
        Self {
            container: Some(container),
            ..self
        }
    }

    /// The time of the backup; a later time compares greater.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }

    /// Returns the name of the backup's directory on its target, such as `docker+web@2026-07-28T09-30-00.000Z`. It is
    /// valid on every file system, and no two ids have the same.
    pub fn file_name(&self) -> String {
        self.to_string().replace(':', &FILE_COLON.to_string())
    }

    /// Returns the id whose directory has this name; `None` if it is the name of no backup.
    pub fn of_file_name(name: &str) -> Option<Self> {
        let id: Self = name.replace(FILE_COLON, ":").parse().ok()?;
        (id.file_name() == name).then_some(id)
    }
}

impl TryFrom<String> for BackupId {
    type Error = InvalidText;

    fn try_from(id: String) -> Result<Self, InvalidText> {
        let invalid = InvalidText(
            "a backup is named as backup_list shows it, such as web@2026-07-28T09-30-00.000Z",
        );
        let (subject, stamp) = id.rsplit_once('@').ok_or(invalid)?;
        let container = if subject == HOST {
            None
        } else {
            Some(subject.parse().map_err(|_| invalid)?)
        };
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-".contains(&b);
        let fits = STAMP_BYTES.contains(&stamp.len()) && stamp.bytes().all(plain);
        let stamp = stamp.to_owned();
        fits.then_some(Self { container, stamp }).ok_or(invalid)
    }
}

impl FromStr for BackupId {
    type Err = InvalidText;

    fn from_str(id: &str) -> Result<Self, InvalidText> {
        id.to_owned().try_into()
    }
}

impl From<BackupId> for String {
    fn from(id: BackupId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.container.as_ref().map_or(HOST, ContainerRef::as_str);
        write!(f, "{subject}@{}", self.stamp)
    }
}

/// The subject of a backup, or the destination of a restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BackupSubject {
    /// A container: its definition and its files.
    Container(ContainerRef),
    /// A directory or file of the host, by its absolute path. A restore needs a directory that does not exist yet.
    Path(String),
}

impl BackupSubject {
    /// The container, if it is one.
    pub fn container(&self) -> Option<&ContainerRef> {
        match self {
            Self::Container(container) => Some(container),
            Self::Path(_) => None,
        }
    }
}

/// An operation on backups or backup targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum BackupAction {
    /// Print the backup targets, as a JSON list ([`BackupTarget`](super::backup_facts::BackupTarget)).
    Targets {},
    /// Add a directory below a root that `helper.toml` names.
    AddTarget {
        /// The name of the target and of its directory.
        target: TargetName,
        /// The root; the first when absent.
        #[serde(default)]
        root: Option<String>,
    },
    /// Remove a target that was added this way; its backups are kept.
    RemoveTarget {
        /// The target.
        target: TargetName,
    },
    /// Mount the disk or share of a target.
    Mount {
        /// The target.
        target: TargetName,
    },
    /// Unmount the disk or share of a target.
    Unmount {
        /// The target.
        target: TargetName,
    },
    /// Print the backups, as JSON ([`BackupList`](super::backup_facts::BackupList)).
    List {
        /// The target; all targets when absent.
        #[serde(default)]
        target: Option<TargetName>,
    },
    /// Create a backup, and print it as JSON ([`CreatedBackup`](super::backup_facts::CreatedBackup)).
    Create {
        /// The target that stores it.
        target: TargetName,
        /// The container or path to back up.
        subject: BackupSubject,
        /// Whether a running container is frozen during the backup.
        freeze: bool,
        /// Which older backups of the same subject to keep; all when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keep: Option<BackupKeep>,
    },
    /// Delete a backup, and print it as JSON ([`DeletedBackup`](super::backup_facts::DeletedBackup)).
    Delete {
        /// The target that holds it.
        target: TargetName,
        /// The backup.
        backup: BackupId,
    },
    /// Read a backup completely, and print as JSON whether it is intact
    /// ([`Verified`](super::backup_facts::VerifiedBackup)).
    Verify {
        /// The target that holds it.
        target: TargetName,
        /// The backup.
        backup: BackupId,
    },
    /// Restore a backup. For a container of Docker or Podman it prints JSON
    /// ([`RestoredContainer`](super::backup_facts::RestoredContainer)), otherwise nothing.
    Restore {
        /// The target that holds it.
        target: TargetName,
        /// The backup.
        backup: BackupId,
        /// The destination: the stopped container of the backup, a new container, or a new directory.
        subject: BackupSubject,
    },
}

impl BackupAction {
    /// The facts of the operation: its row in the table.
    pub fn facts(&self) -> OperationFacts<'_> {
        match self {
            Self::Targets {} => reads("backup_targets", HelperClass::Backup),
            Self::AddTarget { .. } => changes("backup_add_target", HelperClass::Backup),
            Self::RemoveTarget { .. } => changes("backup_remove_target", HelperClass::Backup),
            Self::Mount { .. } => changes("backup_mount", HelperClass::Backup),
            Self::Unmount { .. } => changes("backup_unmount", HelperClass::Backup),
            Self::List { .. } => reads("backup_list", HelperClass::Backup),
            Self::Create { subject, keep, .. } => {
                let class = match keep {
                    Some(_) => HelperClass::BackupDelete,
                    None => HelperClass::Backup,
                };
                changes("backup_create", class)
                    .takes(TimeClass::Backup)
                    .on(subject.container())
            }
            Self::Delete { backup, .. } => changes("backup_delete", HelperClass::BackupDelete)
                .takes(TimeClass::Backup)
                .on(backup.container()),
            Self::Verify { backup, .. } => reads("backup_verify", HelperClass::Backup)
                .takes(TimeClass::Backup)
                .on(backup.container()),
            Self::Restore { backup, .. } => changes("backup_restore", HelperClass::Backup)
                .takes(TimeClass::Backup)
                .on(backup.container()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_neither_an_option_nor_a_path() {
        for good in ["usb", "a", "nas_2-old", &"x".repeat(32)] {
            assert_eq!(good.parse::<TargetName>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "-a",
            "_a",
            "A",
            "a/b",
            "..",
            "a b",
            "a\0",
            &"x".repeat(33),
        ] {
            assert!(bad.parse::<TargetName>().is_err(), "{bad:?}");
        }
        for good in [
            "web@2026-07-28T09-30-00.000Z",
            "_host@2026-07-28T09-30-00.000Z",
            "_host.@0123abcd",
        ] {
            let read = good.parse::<BackupId>().map(|id| id.to_string());
            assert_eq!(read.is_ok(), !good.contains("host."), "{good}");
        }
        for bad in [
            "",
            "web",
            "web@",
            "@2026-07-28",
            "web@2026/07/28",
            "../web@20260728",
            "web@20260728\n",
            "-web@20260728",
            "web@a@20260728",
            "docker:@20260728",
            "docker:a@b@c@20260728",
            "docker+web@20260728",
            "docker:web@20260728:1",
        ] {
            assert!(bad.parse::<BackupId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn each_id_has_a_file_name_of_its_own_and_comes_back_from_it() {
        let stamp = "2026-07-28T09-30-00.000Z";
        for (subject, file) in [
            ("web", "web"),
            ("_host", "_host"),
            ("docker:web", "docker+web"),
            ("podman:web", "podman+web"),
            ("docker:web@media", "docker+web@media"),
            ("podman:a.b_c-d@alice", "podman+a.b_c-d@alice"),
        ] {
            let id: BackupId = format!("{subject}@{stamp}").parse().unwrap();
            assert_eq!(id.stamp(), stamp);
            assert_eq!(id.to_string(), format!("{subject}@{stamp}"));
            assert_eq!(id.file_name(), format!("{file}@{stamp}"));
            assert_eq!(BackupId::of_file_name(&id.file_name()), Some(id));
        }
        for none in [
            "docker:web@20260728",
            "lxc+web@20260728",
            "we+b@20260728",
            "docker+web@media+20260728",
            "+web@20260728",
        ] {
            assert_eq!(BackupId::of_file_name(none), None, "{none}");
        }
    }

    #[test]
    fn an_id_says_what_it_is_of() {
        let web: ContainerRef = "web".parse().unwrap();
        let id = BackupId::new(Some(web.clone()), "2026-07-28T09:30:00.000Z");
        assert_eq!(id.to_string(), "web@2026-07-28T09-30-00.000Z");
        assert_eq!(id.to_string().parse(), Ok(id.clone()));
        assert_eq!(id.container(), Some(&web));
        let of_host = BackupId::new(None, "2026-07-28T09:30:00.001Z");
        assert!(of_host.container().is_none() && of_host.stamp() > id.stamp());
        assert_eq!(of_host.of(web.clone()).container(), Some(&web));
    }
}
