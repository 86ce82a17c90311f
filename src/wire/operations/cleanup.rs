//! What can be deleted to free disk space: the items of a report, and the orders to delete some of them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use gatewren_base::config::RuntimeKind;

use super::container_ref::ContainerRef;
use super::snapshot_name::SnapshotName;
use super::text_type::{InvalidText, text_type};

/// The most items of one order; a longer one is rejected.
pub const MAX_CLEANUP_ITEMS: usize = 64;

/// The mark before the results in the output of an operation that deletes items: programs' output precedes it.
pub const CLEANUP_MARK: &str = "gatewren: cleanup ";

/// The directories in which core dumps and crash reports are.
pub const DUMP_DIRECTORIES: [&str; 2] = ["/var/lib/systemd/coredump", "/var/crash"];

text_type!(
    /// The version of a kernel, as `uname -r` prints it, such as `6.1.0-25-amd64`. It begins with a digit.
    KernelRelease,
    { "pattern": "^[0-9][A-Za-z0-9.+~-]{0,63}$" },
    |text| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".+~-".contains(&b);
        text.len() <= 64 && text.starts_with(|c: char| c.is_ascii_digit()) && text.bytes().all(plain)
    },
    "a kernel's version is digits, letters, '.', '+', '~' and '-', such as 6.1.0-25-amd64"
);

text_type!(
    /// The path of a file directly in one of the directories of core dumps.
    DumpPath,
    { "maxLength": 300 },
    is_dump,
    "a core dump is a file in /var/lib/systemd/coredump or /var/crash"
);

text_type!(
    /// The name of a volume of Docker or Podman: 1 to 255 letters, digits, `.`, `_` and `-`, beginning with a letter or
    /// a digit.
    VolumeName,
    { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$" },
    |text| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        begins && text.len() <= 255 && text.bytes().all(plain)
    },
    "a volume's name is letters, digits, '.', '_' and '-', and begins with a letter or a digit"
);

text_type!(
    /// The id of an image: `sha256:` and 64 of `0-9a-f`.
    ImageDigest,
    { "pattern": "^sha256:[0-9a-f]{64}$" },
    |text| text.strip_prefix("sha256:").is_some_and(|digits| {
        digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }),
    "an image's id is sha256: and 64 hexadecimal digits"
);

/// One thing that can be deleted. Its text is its id in reports and orders, such as `apt-cache`,
/// `snapshot:alpha/snap0` or `volume:docker/media_cache`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", description = "")]
pub enum CleanupItem {
    /// Package files that apt downloaded.
    AptCache,
    /// The oldest entries of the host's journal.
    Journal,
    /// The packages of a kernel that is neither running nor the newest.
    OldKernel(KernelRelease),
    /// A core dump or crash report.
    CoreDump(DumpPath),
    /// A snapshot of a container of LXC.
    Snapshot {
        /// The container.
        container: ContainerRef,
        /// The snapshot.
        snapshot: SnapshotName,
    },
    /// A volume that no container uses.
    Volume {
        /// Docker or Podman.
        engine: RuntimeKind,
        /// The volume's name.
        name: VolumeName,
    },
    /// An image without a name that no container uses.
    Image {
        /// Docker or Podman.
        engine: RuntimeKind,
        /// The image's id.
        id: ImageDigest,
    },
    /// The parts of an engine's build cache that no build uses.
    BuildCache {
        /// Docker or Podman.
        engine: RuntimeKind,
    },
}

/// An item that a report found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupFinding {
    /// The item's id for `disk_cleanup`.
    pub id: CleanupItem,
    /// What deleting it frees, in bytes; at most that, if other data shares blocks with it.
    pub bytes: u64,
    /// Its path on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why it can be deleted.
    pub why: String,
    /// Whether deleting it loses data that cannot be downloaded or made again.
    pub irreversible: bool,
}

/// An item to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanupOrder {
    /// The item's id, as `disk_report` shows it.
    pub id: CleanupItem,
    /// Its size, as `disk_report` shows it. An item that has grown since is not deleted.
    pub bytes: u64,
}

/// The items to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskCleanup {
    /// The items.
    pub items: Vec<CleanupOrder>,
    /// The agent that requests it, for apt's own history.
    pub agent: String,
}

/// What became of an item to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CleanupResult {
    /// The item's id.
    pub id: CleanupItem,
    /// What deleting it freed, in bytes.
    pub freed_bytes: u64,
    /// Why it was not deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The size of a directory with its content, without file systems mounted below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DirectorySize {
    /// Its path.
    pub path: String,
    /// Its size in bytes on disk.
    pub bytes: u64,
}

/// What fills the host's own file systems, and what can be deleted there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostDiskReport {
    /// The largest directories.
    pub directories: Vec<DirectorySize>,
    /// What can be deleted.
    pub items: Vec<CleanupFinding>,
    /// Whether the time was over before everything was counted.
    pub incomplete: bool,
}

/// What containers take on the disks, and what of theirs can be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerDiskReport {
    /// The containers.
    pub containers: Vec<ContainerSize>,
    /// What Docker and Podman keep beside containers.
    pub engines: Vec<EngineDiskUse>,
    /// What can be deleted.
    pub items: Vec<CleanupFinding>,
    /// What could not be read, in sentences.
    pub problems: Vec<String>,
    /// Whether the time was over before everything was counted.
    pub incomplete: bool,
}

/// What a container takes on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContainerSize {
    /// The container.
    pub container: ContainerRef,
    /// The size of its files in bytes, for Docker and Podman without its image; absent if it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The directory of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The size of its snapshots in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_bytes: Option<u64>,
}

/// What Docker or Podman keeps on the disk, in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineDiskUse {
    /// `docker` or `podman`.
    #[schemars(with = "String")]
    pub engine: RuntimeKind,
    /// All layers of images.
    pub images_bytes: u64,
    /// All volumes.
    pub volumes_bytes: u64,
    /// The build cache.
    pub build_cache_bytes: u64,
}

const INVALID: InvalidText = InvalidText(
    "an item is named as disk_report names it, such as apt-cache, snapshot:alpha/snap0 or volume:docker/NAME",
);

impl TryFrom<String> for CleanupItem {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, InvalidText> {
        text.parse()
    }
}

impl FromStr for CleanupItem {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let Some((kind, rest)) = text.split_once(':') else {
            return match text {
                "apt-cache" => Ok(Self::AptCache),
                "journal" => Ok(Self::Journal),
                _ => Err(INVALID),
            };
        };
        let parts = || rest.split_once('/').ok_or(INVALID);
        Ok(match kind {
            "kernel" => Self::OldKernel(rest.parse()?),
            "core-dump" => Self::CoreDump(rest.parse()?),
            "snapshot" => {
                let (container, snapshot) = parts()?;
                Self::Snapshot {
                    container: container.parse()?,
                    snapshot: snapshot.parse()?,
                }
            }
            "volume" => {
                let (engine, name) = parts()?;
                Self::Volume {
                    engine: engine_of(engine)?,
                    name: name.parse()?,
                }
            }
            "image" => {
                let (engine, id) = parts()?;
                Self::Image {
                    engine: engine_of(engine)?,
                    id: id.parse()?,
                }
            }
            "build-cache" => Self::BuildCache {
                engine: engine_of(rest)?,
            },
            _ => return Err(INVALID),
        })
    }
}

impl fmt::Display for CleanupItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AptCache => f.write_str("apt-cache"),
            Self::Journal => f.write_str("journal"),
            Self::OldKernel(release) => write!(f, "kernel:{release}"),
            Self::CoreDump(path) => write!(f, "core-dump:{path}"),
            Self::Snapshot {
                container,
                snapshot,
            } => write!(f, "snapshot:{container}/{snapshot}"),
            Self::Volume { engine, name } => write!(f, "volume:{engine}/{name}"),
            Self::Image { engine, id } => write!(f, "image:{engine}/{id}"),
            Self::BuildCache { engine } => write!(f, "build-cache:{engine}"),
        }
    }
}

impl From<CleanupItem> for String {
    fn from(item: CleanupItem) -> Self {
        item.to_string()
    }
}

/// Returns the engine of root with this word.
fn engine_of(word: &str) -> Result<RuntimeKind, InvalidText> {
    let engines = [RuntimeKind::Docker, RuntimeKind::Podman];
    let named = engines.into_iter().find(|engine| engine.word() == word);
    named.ok_or(INVALID)
}

fn is_dump(path: &str) -> bool {
    let below = |folder: &&str| path.strip_prefix(*folder)?.strip_prefix('/');
    let name = DUMP_DIRECTORIES.iter().find_map(below);
    name.is_some_and(|name| {
        let is_one = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
        is_one && path.len() <= 300 && name.bytes().all(|b| b.is_ascii_graphic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        let image = format!("image:podman/sha256:{}", "0a".repeat(32));
        for id in [
            "apt-cache",
            "journal",
            "kernel:6.1.0-25-amd64",
            "core-dump:/var/lib/systemd/coredump/core.x.1000.zst",
            "core-dump:/var/crash/_usr_bin_x.0.crash",
            "snapshot:alpha/snap3",
            "volume:docker/media_cache",
            image.as_str(),
            "build-cache:docker",
        ] {
            assert_eq!(id.parse::<CleanupItem>().unwrap().to_string(), id);
        }
    }

    #[test]
    fn what_is_no_item_is_rejected() {
        for bad in [
            "",
            "apt",
            "apt-cache:x",
            "kernel:",
            "kernel:-y",
            "kernel:amd64",
            "kernel:6 --purge",
            "core-dump:/etc/passwd",
            "core-dump:/var/crash/../lib/x",
            "core-dump:/var/crash/..",
            "core-dump:/var/crash/",
            "core-dump:/var/crashes/x",
            "snapshot:alpha",
            "snapshot:alpha/ALL",
            "snapshot:../snap0",
            "volume:lxc/x",
            "volume:docker-in-lxc/x",
            "volume:docker/../x",
            "volume:docker/",
            "image:docker/sha256:00",
            "image:docker/web:1",
            "build-cache:lxc",
            "tmp:/tmp/x",
        ] {
            assert!(bad.parse::<CleanupItem>().is_err(), "{bad:?}");
        }
    }
}
