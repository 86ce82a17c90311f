//! The file systems that hold data, and their usage.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::unescape_mount;

use super::mounts_and_clock::MountsAndClock;
use super::usage::percent;

/// Local file systems without a block device.
const LOCAL: [&str; 3] = ["btrfs", "zfs", "bcachefs"];

/// File systems with their data on another machine.
const NETWORK: [&str; 12] = [
    "9p",
    "afs",
    "ceph",
    "cifs",
    "davfs",
    "fuse.davfs2",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.sshfs",
    "nfs",
    "nfs4",
    "smb3",
];

/// File systems in memory below these paths are standard; elsewhere an administrator mounted them
/// on purpose.
const RUNTIME: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// Program images, which are always full.
const IMAGES: [&str; 3] = ["squashfs", "erofs", "iso9660"];

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub path: String,
    /// Its kind, such as `ext4`.
    pub filesystem: String,
    /// Its size in bytes.
    pub total_bytes: u64,
    /// What an unprivileged program may still write, in bytes.
    pub available_bytes: u64,
    /// The usage, as `df` counts it: space reserved for root counts as used.
    pub used_percent: f64,
}

/// The usage of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct FilesystemUsage {
    /// What an unprivileged program may still write, in bytes.
    pub available_bytes: u64,
    /// The usage, as `df` counts it: space reserved for root counts as used.
    pub used_percent: f64,
}

/// A mounted file system, with its sizes where available.
pub type MountedFilesystem = (MountPoint, Option<Mount>);

/// A mount point and its file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    /// Where it is mounted.
    pub path: String,
    /// Its kind, such as `ext4`.
    pub filesystem: String,
    /// The mounted device or share, such as `/dev/sda1` or `nas:/export`.
    pub source: String,
    /// Its device number, such as `8:1`; major number 0 is no device.
    pub device: String,
    /// Whether it is read-only, by its options or after an error.
    pub read_only: bool,
    /// The place of its data.
    pub data: DataLocation,
    /// Whether it is the whole file system, not a bind mount of a part.
    whole: bool,
}

/// The place of a file system's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataLocation {
    /// On a disk of the host.
    Disk,
    /// In memory.
    Memory,
    /// On another machine: querying its size blocks while that machine is down.
    Network,
}

impl Mount {
    /// Returns the usage.
    pub fn space(&self) -> FilesystemUsage {
        FilesystemUsage {
            available_bytes: self.available_bytes,
            used_percent: self.used_percent,
        }
    }
}

impl MountPoint {
    /// Returns the mount with its sizes; `None` if they are unavailable.
    fn measure(&self, seen: &MountsAndClock) -> Option<Mount> {
        if self.data == DataLocation::Network {
            return None;
        }
        let space = seen.space(&self.path)?;
        let used = space.total_bytes.saturating_sub(space.free_bytes);
        (space.total_bytes > 0).then(|| Mount {
            path: self.path.clone(),
            filesystem: self.filesystem.clone(),
            total_bytes: space.total_bytes,
            available_bytes: space.available_bytes,
            used_percent: percent(used, used.saturating_add(space.available_bytes)),
        })
    }
}

/// Returns the file systems on the host's disks with their sizes, sorted by path.
pub fn mounts(seen: &MountsAndClock) -> Vec<Mount> {
    let all = mounted_filesystems(seen).into_iter();
    all.filter(|(point, _)| point.data == DataLocation::Disk)
        .filter_map(|(_, mount)| mount)
        .collect()
}

/// Returns the file systems that hold data, sorted by path, with their sizes where available.
///
/// Network file systems have no sizes: a query blocks if the server is down.
pub fn mounted_filesystems(seen: &MountsAndClock) -> Vec<MountedFilesystem> {
    let points = mount_points(&seen.mountinfo).into_iter();
    points
        .map(|point| (point.measure(seen), point))
        .map(|(mount, point)| (point, mount))
        .collect()
}

/// Returns the paths of the file systems to measure.
pub fn places_to_measure(mountinfo: &str) -> Vec<String> {
    let points = mount_points(mountinfo).into_iter();
    points
        .filter(|point| point.data != DataLocation::Network)
        .map(|point| point.path)
        .collect()
}

/// Parses `/proc/self/mountinfo` (proc(5)) and sorts by path. Of several mounts of one file system,
/// the one with the shortest path is kept.
fn mount_points(mountinfo: &str) -> Vec<MountPoint> {
    let mut by_path = BTreeMap::new();
    for point in mountinfo.lines().filter_map(mount_point) {
        // A later mount at the same path hides the earlier one.
        by_path.insert(point.path.clone(), point);
    }
    let mut by_device: BTreeMap<(String, String), MountPoint> = BTreeMap::new();
    for point in by_path.into_values() {
        let key = (point.device.clone(), point.source.clone());
        let rank = |point: &MountPoint| (!point.whole, point.path.len());
        let best = by_device.entry(key).or_insert_with(|| point.clone());
        if rank(&point) < rank(best) {
            *best = point;
        }
    }
    let mut points: Vec<_> = by_device.into_values().collect();
    points.sort_by(|a, b| a.path.cmp(&b.path));
    points
}

/// Parses one line: id, parent, device, root, path, options, more fields up to a dash, then kind,
/// source, and options of the file system.
fn mount_point(line: &str) -> Option<MountPoint> {
    let (here, filesystem) = line.split_once(" - ")?;
    let mut here = here.split(' ').skip(2).map(unescape_mount);
    let (device, root, path, options) = (here.next()?, here.next()?, here.next()?, here.next()?);
    let mut words = filesystem.split(' ').map(unescape_mount);
    let (filesystem, source, more) = (words.next()?, words.next()?, words.next()?);
    let read_only = |options: &str| options.split(',').any(|option| option == "ro");
    Some(MountPoint {
        data: data(&path, &filesystem, &source)?,
        whole: root == "/",
        read_only: read_only(&options) || read_only(&more),
        path,
        filesystem,
        source,
        device,
    })
}

/// Returns where the data is; `None` for a file system without data of value.
fn data(path: &str, filesystem: &str, source: &str) -> Option<DataLocation> {
    let beneath = |place: &str| {
        path.strip_prefix(place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !path.starts_with('/') || IMAGES.contains(&filesystem) {
        return None;
    }
    if NETWORK.contains(&filesystem) {
        return Some(DataLocation::Network);
    }
    if filesystem == "tmpfs" {
        // A container engine mounts `shm` in each container.
        let on_purpose = source != "shm" && !RUNTIME.into_iter().any(beneath);
        return on_purpose.then_some(DataLocation::Memory);
    }
    // An overlay elsewhere than at the root belongs to a container.
    let root_overlay = filesystem == "overlay" && path == "/";
    let is_device = source.starts_with("/dev/") && source != "/dev/fuse";
    let on_device = is_device && !filesystem.starts_with("fuse.");
    (on_device || root_overlay || LOCAL.contains(&filesystem)).then_some(DataLocation::Disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_file_systems_that_hold_data_each_once() {
        let text = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
            27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
            25 24 0:23 / /dev/shm rw shared:4 - tmpfs tmpfs rw,size=24684084k\n\
            26 24 0:24 / /runner rw shared:4 - tmpfs tmpfs rw\n\
            31 27 254:0 /var/lib/x /a rw shared:1 master:2 - ext4 /dev/vda rw\n\
            32 27 8:17 / /srv/my\\040photos ro - xfs /dev/sdb1 rw\n\
            33 27 8:33 / /srv/broken rw - ext4 /dev/sdc1 ro,errors=remount-ro\n\
            34 27 0:50 / /mnt/nas rw - nfs4 nas:/export rw\n\
            35 27 0:51 / /mnt/smb rw - cifs //nas/x rw\n\
            36 27 0:52 / /tank rw - zfs tank/data rw\n\
            37 27 7:3 / /snap/core ro - squashfs /dev/loop3 ro\n\
            38 27 0:53 / /run/user/0/doc rw - fuse.portal /dev/fuse rw\n\
            45 27 0:58 / /etc/pve rw - fuse /dev/fuse rw\n\
            39 27 0:54 / /mnt/ssh rw - fuse.sshfs me@there: rw\n\
            40 27 0:55 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n\
            41 27 0:56 /@ /data rw - btrfs /dev/sdd rw\n\
            42 27 0:56 /@home /home rw - btrfs /dev/sdd rw\n\
            43 27 0:57 / /under rw - tmpfs tmpfs rw\n\
            44 27 8:49 / /under rw - ext4 /dev/sdd1 rw\n";
        let points = mount_points(text);
        let points: Vec<_> = points
            .iter()
            .map(|p| (p.path.as_str(), p.filesystem.as_str(), p.data, p.read_only))
            .collect();
        assert_eq!(
            points,
            [
                ("/", "ext4", DataLocation::Disk, false),
                ("/data", "btrfs", DataLocation::Disk, false),
                ("/mnt/nas", "nfs4", DataLocation::Network, false),
                ("/mnt/smb", "cifs", DataLocation::Network, false),
                ("/mnt/ssh", "fuse.sshfs", DataLocation::Network, false),
                ("/runner", "tmpfs", DataLocation::Memory, false),
                ("/srv/broken", "ext4", DataLocation::Disk, true),
                ("/srv/my photos", "xfs", DataLocation::Disk, true),
                ("/tank", "zfs", DataLocation::Disk, false),
                ("/under", "ext4", DataLocation::Disk, false),
            ]
        );
    }

    #[test]
    fn odd_input_is_nothing() {
        for text in [
            "",
            "\n",
            "1 2 8:1 / / rw",
            "1 2 8:1 / / rw - ext4",
            "1 2 8:1 / / - ext4 /dev/sda rw",
            " - ",
            "1 2 8:1 / none rw - ext4 /dev/sda rw",
            "\u{fffd} \u{fffd}",
        ] {
            assert!(mount_points(text).is_empty(), "{text}");
        }
        assert!(
            mounts(&MountsAndClock::of_this_process(
                "1 2 8:1 / /no/such/place rw - ext4 /dev/sda rw"
            ))
            .is_empty()
        );
        // A query for its size would block.
        assert!(
            mounts(&MountsAndClock::of_this_process(
                "1 2 0:50 / / rw - nfs4 nas:/export rw"
            ))
            .is_empty()
        );
    }

    #[test]
    fn the_root_has_a_size() {
        let root = mounts(&MountsAndClock::of_this_process(
            "1 2 8:1 / / rw - ext4 /dev/root rw\n",
        ));
        assert!(root[0].total_bytes >= root[0].available_bytes);
        assert!((0.0..=100.0).contains(&root[0].used_percent), "{root:?}");
    }
}
