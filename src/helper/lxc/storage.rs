//! Where the files of a container are, and the places where they can be moved.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use gatewren_base::config::{ContainerStore, DEFAULT_STORE};
use gatewren_base::sys::source::text;
use gatewren_base::sys::{disk_space, own_uid, unescape_mount};
use gatewren_wire::operations::{
    ContainerRef, ContainerStorage, OperationRefusal, StoreFacts, StoreName,
};

use super::config_files::value;
use crate::context::helper_context::HelperContext;

/// The key of a definition that names the root file system.
pub const ROOT_KEY: &str = "lxc.rootfs.path";

/// The permissions that only the owner of a place may have.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The file systems that keep owners, permissions, attributes and links, and on which containers run.
const SUITABLE: [&str; 6] = ["btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs"];

/// What must stay free beyond the container's own size and a twentieth of it, in bytes.
const RESERVE: u64 = 64 << 20;

/// A place for containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePlace {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
}

/// The root file system of a container, by its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootStorage {
    /// A directory, which may be a btrfs subvolume.
    Directory(PathBuf),
    /// Something else: LXC's word for it.
    Other(String),
}

/// Returns the places: LXC's own directory, and those of the owner's file.
pub fn places(helper: &HelperContext) -> Vec<StorePlace> {
    let own = StorePlace {
        name: DEFAULT_STORE.to_owned(),
        path: helper.containers.lxcpath().to_owned(),
    };
    let stores = helper.policy.now().container_stores.clone();
    let named = stores.iter().map(|store: &ContainerStore| StorePlace {
        name: store.name().to_owned(),
        path: PathBuf::from(store.path()),
    });
    std::iter::once(own).chain(named).collect()
}

/// Returns the directory for a container's files in a place.
pub fn root_in(place: &Path, container: &ContainerRef) -> PathBuf {
    place.join(container.as_str()).join("rootfs")
}

/// Reads where the root file system is from a definition.
pub fn root_storage(config: &Path) -> RootStorage {
    let path = value(config, ROOT_KEY).unwrap_or_default();
    let plain = ["dir:", "btrfs:"]
        .into_iter()
        .find_map(|kind| path.strip_prefix(kind))
        .unwrap_or(&path);
    if plain.starts_with("/dev/") {
        return RootStorage::Other("lvm".to_owned());
    }
    if plain.starts_with('/') {
        return RootStorage::Directory(PathBuf::from(plain));
    }
    let kind = plain.split(':').next().unwrap_or_default();
    let is_word = !kind.is_empty() && kind.len() <= 16;
    let is_word = is_word && kind.bytes().all(|b| b.is_ascii_lowercase());
    RootStorage::Other(if is_word { kind } else { "unknown" }.to_owned())
}

/// Returns the facts about a container's storage. `bytes` is the size of its files, if it was counted.
pub fn facts(
    places: &[StorePlace],
    container: &ContainerRef,
    storage: &RootStorage,
    bytes: Option<u64>,
) -> ContainerStorage {
    let table = text("/proc/self/mountinfo").unwrap_or_default();
    let stores = places.iter().filter_map(|place| {
        let obstacle = obstacle(place, container, storage, bytes, &table);
        Some(StoreFacts {
            name: StoreName::try_from(place.name.clone()).ok()?,
            path: place.path.to_str().map(str::to_owned),
            filesystem: filesystem_of(&place.path, &table),
            available_bytes: available(&place.path),
            fits: obstacle.is_none(),
            obstacle,
        })
    });
    let (kind, path) = match storage {
        RootStorage::Directory(path) => {
            let on = filesystem_of(path, &table);
            let is_btrfs = on.as_deref() == Some("btrfs");
            (if is_btrfs { "btrfs" } else { "directory" }, Some(path))
        }
        RootStorage::Other(kind) => (kind.as_str(), None),
    };
    ContainerStorage {
        kind: kind.to_owned(),
        filesystem: path.and_then(|path| filesystem_of(path, &table)),
        available_bytes: path.and_then(|path| available(path)),
        path: path.and_then(|path| path.to_str().map(str::to_owned)),
        bytes,
        old_copy: None,
        stores: stores.collect(),
    }
}

/// Returns why a container cannot be moved to a place; `None` if it can.
pub fn obstacle(
    place: &StorePlace,
    container: &ContainerRef,
    storage: &RootStorage,
    bytes: Option<u64>,
    mountinfo: &str,
) -> Option<String> {
    let shown = place.path.display();
    let root = match storage {
        RootStorage::Directory(root) => root,
        RootStorage::Other(kind) => {
            return Some(format!(
                "its root file system is of the kind {kind}; only directories and btrfs subvolumes can be moved"
            ));
        }
    };
    let new = root_in(&place.path, container);
    if *root == new {
        return Some("it is there already".to_owned());
    }
    if let Err(refusal) = check_store(&place.path) {
        return Some(refusal.message);
    }
    if fs::symlink_metadata(&new).is_ok() {
        return Some(format!(
            "{} exists already; it may be the copy that an earlier move left (remove_old deletes that)",
            new.display()
        ));
    }
    let kind = filesystem_of(&place.path, mountinfo).unwrap_or_default();
    if !SUITABLE.contains(&kind.as_str()) {
        return Some(format!(
            "{shown} is on {kind}, which does not keep all that a container's files need"
        ));
    }
    let (Some(bytes), Some(free)) = (bytes, available(&place.path)) else {
        return Some("its size or the free space is unknown".to_owned());
    };
    let needed = bytes.saturating_add(bytes / 20).saturating_add(RESERVE);
    (needed > free).then(|| format!("it needs {needed} bytes there, and {free} are free"))
}

/// Rejects a place that is not there, or where another user could replace a container's files.
fn check_store(path: &Path) -> Result<(), OperationRefusal> {
    let shown = path.display();
    let facts = fs::symlink_metadata(path)
        .map_err(|e| OperationRefusal::failed(format!("{shown} cannot be used: {e}")))?;
    let is_own = facts.uid() == own_uid() && facts.mode() & WRITABLE_BY_OTHERS == 0;
    if facts.is_dir() && is_own {
        return Ok(());
    }
    Err(OperationRefusal::failed(format!(
        "{shown} must be a directory that only root can write; run on the server: chown root {shown} && chmod go-w \
         {shown}"
    )))
}

fn available(path: &Path) -> Option<u64> {
    disk_space(path).ok().map(|space| space.available_bytes)
}

/// Returns the type of the file system that a path is on.
pub fn filesystem_of(path: &Path, mountinfo: &str) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, filesystem) = line.split_once(" - ")?;
        let place = unescape_mount(mount.split(' ').nth(4)?);
        let kind = filesystem.split(' ').next()?;
        path.starts_with(&place).then_some((place.len(), kind))
    });
    // Of two mounts at one place, the later one is on top.
    let deepest = mounts.max_by_key(|(length, _)| *length);
    deepest.map(|(_, kind)| kind.to_owned())
}

/// Returns the mounts below a path.
pub fn mounted_below(path: &Path, mountinfo: &str) -> Option<PathBuf> {
    let mut places = mountinfo.lines().filter_map(|line| {
        let place = line.split(' ').nth(4)?;
        Some(PathBuf::from(unescape_mount(place)))
    });
    places.find(|place| place.starts_with(path) && place != path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_base::sys::Scratch;

    const TABLE: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        23 22 8:17 / /srv rw - btrfs /dev/sdb1 rw\n\
        24 23 8:33 / /srv/usb rw - vfat /dev/sdc1 rw\n";

    #[test]
    fn the_kind_of_storage_is_read_from_the_definition() {
        let scratch = Scratch::new();
        let file = scratch.join("config");
        for (path, expected) in [
            ("/x/rootfs", RootStorage::Directory("/x/rootfs".into())),
            ("dir:/x/rootfs", RootStorage::Directory("/x/rootfs".into())),
            (
                "btrfs:/x/rootfs",
                RootStorage::Directory("/x/rootfs".into()),
            ),
            ("/dev/vg0/web", RootStorage::Other("lvm".to_owned())),
            ("lvm:/dev/vg0/web", RootStorage::Other("lvm".to_owned())),
            ("zfs:tank/web", RootStorage::Other("zfs".to_owned())),
            ("overlay:/a:/b", RootStorage::Other("overlay".to_owned())),
            ("", RootStorage::Other("unknown".to_owned())),
        ] {
            fs::write(&file, format!("{ROOT_KEY} = {path}\n")).unwrap();
            assert_eq!(root_storage(&file), expected, "{path}");
        }
    }

    #[test]
    fn the_deepest_mount_has_the_path() {
        let on = |path: &str| filesystem_of(Path::new(path), TABLE).unwrap();
        assert_eq!(on("/var/lib/lxc"), "ext4");
        assert_eq!(on("/srv/lxc"), "btrfs");
        assert_eq!(on("/srv/usb/lxc"), "vfat");
        assert_eq!(on("/srvx"), "ext4");
        assert_eq!(
            mounted_below(Path::new("/srv"), TABLE),
            Some("/srv/usb".into())
        );
        assert_eq!(mounted_below(Path::new("/srv/usb"), TABLE), None);
    }
}
