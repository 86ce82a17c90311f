//! Backups: what is kept of a container or a directory, where, and what can be done with it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::name::ContainerName;

/// The name of a place where backups are kept: 1 to 32 of `a-z 0-9 _ -`, beginning with a letter or a digit; never an
/// option, never a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TargetName(String);

const TARGET_PATTERN: &str = "^[a-z0-9][a-z0-9_-]{0,31}$";

/// One backup on a target: what it is of, `@`, and when it was made, such as `web@2026-07-28T09-30-00.000Z`; what is of
/// the host begins with `_host`, which no container's name does. So it is the name of a directory anywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BackupId {
    container: Option<ContainerName>,
    stamp: String,
}

const ID_PATTERN: &str = "^(_host|[A-Za-z0-9][A-Za-z0-9._-]{0,63})@[0-9A-Za-z.-]{8,32}$";

/// What stands for the host in the place of a container's name.
const HOST: &str = "_host";

/// The shortest and the longest time in an id.
const STAMP_BYTES: std::ops::RangeInclusive<usize> = 8..=32;

/// A text is no such name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidBackup(&'static str);

impl fmt::Display for InvalidBackup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for InvalidBackup {}

impl TargetName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl BackupId {
    /// Of a container, or of the host, made at a moment that RFC 3339 writes.
    pub fn new(container: Option<ContainerName>, made: &str) -> Self {
        let stamp = made.replace(':', "-");
        Self { container, stamp }
    }

    /// The container that it is of; nothing when it is of the host.
    pub fn container(&self) -> Option<&ContainerName> {
        self.container.as_ref()
    }

    /// The same one of another container.
    #[must_use]
    pub fn of(self, container: ContainerName) -> Self {
        Self {
            container: Some(container),
            ..self
        }
    }

    /// When it was made; of two the later one is greater.
    pub fn stamp(&self) -> &str {
        &self.stamp
    }
}

impl TryFrom<String> for TargetName {
    type Error = InvalidBackup;

    fn try_from(name: String) -> Result<Self, InvalidBackup> {
        let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let begins_well = name.bytes().next().is_some_and(small);
        let fits = name.len() <= 32 && name.bytes().all(|b| small(b) || b"_-".contains(&b));
        (begins_well && fits).then_some(Self(name)).ok_or({
            InvalidBackup(
                "a backup target's name is 1 to 32 of small letters, digits, '_' and '-', and begins with a letter or a \
                 digit",
            )
        })
    }
}

impl TryFrom<String> for BackupId {
    type Error = InvalidBackup;

    fn try_from(id: String) -> Result<Self, InvalidBackup> {
        let invalid = InvalidBackup(
            "a backup is named as backup_list shows it, such as web@2026-07-28T09-30-00.000Z",
        );
        let (subject, stamp) = id.split_once('@').ok_or(invalid)?;
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

impl FromStr for TargetName {
    type Err = InvalidBackup;

    fn from_str(name: &str) -> Result<Self, InvalidBackup> {
        name.to_owned().try_into()
    }
}

impl FromStr for BackupId {
    type Err = InvalidBackup;

    fn from_str(id: &str) -> Result<Self, InvalidBackup> {
        id.to_owned().try_into()
    }
}

impl From<TargetName> for String {
    fn from(TargetName(name): TargetName) -> Self {
        name
    }
}

impl From<BackupId> for String {
    fn from(id: BackupId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for BackupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = self.container.as_ref().map_or(HOST, ContainerName::as_str);
        write!(f, "{subject}@{}", self.stamp)
    }
}

impl JsonSchema for TargetName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TargetName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": TARGET_PATTERN })
    }
}

impl JsonSchema for BackupId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BackupId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": ID_PATTERN })
    }
}

/// What a backup is made of, and what one becomes again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Subject {
    /// A container: its definition and its root file system.
    Container(ContainerName),
    /// A directory or a file of the host, by its absolute path; where one becomes it again, a directory that is not
    /// there yet.
    Path(String),
}

/// One thing that is done with backups, or looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum BackupDeed {
    /// Print where backups may be kept, as a JSON list ([`BackupTarget`](super::backup_facts::BackupTarget)).
    Targets {},
    /// Add a directory below one that the owner's file names.
    AddTarget {
        /// Its name, and the directory's.
        target: TargetName,
        /// Below which one; the first when absent.
        #[serde(default)]
        root: Option<String>,
    },
    /// Forget one that was added; what is kept there stays.
    RemoveTarget {
        /// Which.
        target: TargetName,
    },
    /// Mount the disk or share of one.
    Mount {
        /// Which.
        target: TargetName,
    },
    /// Unmount it.
    Unmount {
        /// Which.
        target: TargetName,
    },
    /// Print the backups that there are, as JSON ([`BackupList`](super::backup_facts::BackupList)).
    List {
        /// Where; on all targets when absent.
        #[serde(default)]
        target: Option<TargetName>,
    },
    /// Make one, and print it as JSON ([`Backup`](super::backup_facts::Backup)).
    Create {
        /// Where it is kept.
        target: TargetName,
        /// What it is of.
        subject: Subject,
        /// Whether a container that runs stands still meanwhile.
        freeze: bool,
    },
    /// Read one from beginning to end, and print as JSON whether it is whole ([`Verified`](super::backup_facts::Verified)).
    Verify {
        /// Where it is.
        target: TargetName,
        /// Which.
        backup: BackupId,
    },
    /// Bring one back.
    Restore {
        /// Where it is.
        target: TargetName,
        /// Which.
        backup: BackupId,
        /// As what: the stopped container that it is of, a new one, or a new directory.
        subject: Subject,
    },
}

impl BackupDeed {
    /// Its name, as in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Targets {} => "backup_targets",
            Self::AddTarget { .. } => "backup_add_target",
            Self::RemoveTarget { .. } => "backup_remove_target",
            Self::Mount { .. } => "backup_mount",
            Self::Unmount { .. } => "backup_unmount",
            Self::List { .. } => "backup_list",
            Self::Create { .. } => "backup_create",
            Self::Verify { .. } => "backup_verify",
            Self::Restore { .. } => "backup_restore",
        }
    }

    /// Whether it changes nothing.
    pub fn only_looks(&self) -> bool {
        matches!(
            self,
            Self::Targets {} | Self::List { .. } | Self::Verify { .. }
        )
    }

    /// Whether it reads or writes as much as there is, which takes its time.
    pub fn is_long(&self) -> bool {
        matches!(
            self,
            Self::Create { .. } | Self::Verify { .. } | Self::Restore { .. }
        )
    }

    /// The container that it is about, if it is about one.
    pub fn container(&self) -> Option<&ContainerName> {
        match self {
            Self::Create {
                subject: Subject::Container(container),
                ..
            } => Some(container),
            Self::Verify { backup, .. } | Self::Restore { backup, .. } => backup.container(),
            _ => None,
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
        ] {
            assert!(bad.parse::<BackupId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_id_says_what_it_is_of() {
        let web: ContainerName = "web".parse().unwrap();
        let id = BackupId::new(Some(web.clone()), "2026-07-28T09:30:00.000Z");
        assert_eq!(id.to_string(), "web@2026-07-28T09-30-00.000Z");
        assert_eq!(id.to_string().parse(), Ok(id.clone()));
        assert_eq!(id.container(), Some(&web));
        let of_host = BackupId::new(None, "2026-07-28T09:30:00.001Z");
        assert!(of_host.container().is_none() && of_host.stamp() > id.stamp());
        assert_eq!(of_host.of(web.clone()).container(), Some(&web));
    }
}
