//! The file systems that hold data, and how full they are.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::sys::disk_space;

use super::usage::percent;

/// File systems without a block device of their own that hold data all the same.
const LOCAL: [&str; 4] = ["btrfs", "zfs", "bcachefs", "overlay"];

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub path: String,
    /// Its kind, such as `ext4`.
    pub filesystem: String,
    /// Its size in bytes.
    pub total_bytes: u64,
    /// What a program without special rights may still write, in bytes.
    pub available_bytes: u64,
    /// How full it is, as `df` counts: what is reserved for root counts as full.
    pub used_percent: f64,
}

/// Where a file system is mounted, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    path: String,
    filesystem: String,
}

/// The local file systems with their sizes, sorted by path.
///
/// Those on the network are left out: to ask one whose server is gone would hang.
pub fn mounts(proc_mounts: &str) -> Vec<Mount> {
    mount_points(proc_mounts)
        .into_iter()
        .filter_map(measured)
        .collect()
}

fn measured(point: MountPoint) -> Option<Mount> {
    let space = disk_space(Path::new(&point.path)).ok()?;
    let used = space.total_bytes.saturating_sub(space.free_bytes);
    (space.total_bytes > 0).then(|| Mount {
        path: point.path,
        filesystem: point.filesystem,
        total_bytes: space.total_bytes,
        available_bytes: space.available_bytes,
        used_percent: percent(used, used.saturating_add(space.available_bytes)),
    })
}

/// Reads `/proc/mounts`, sorted by path; of several places of one device the one with the shortest path.
fn mount_points(proc_mounts: &str) -> Vec<MountPoint> {
    let mut by_device: BTreeMap<String, MountPoint> = BTreeMap::new();
    for line in proc_mounts.lines() {
        let mut words = line.split(' ').map(unescape);
        let (Some(device), Some(path), Some(filesystem)) =
            (words.next(), words.next(), words.next())
        else {
            continue;
        };
        if !holds_data(&device, &path, &filesystem) {
            continue;
        }
        let point = MountPoint { path, filesystem };
        let best = by_device.entry(device).or_insert_with(|| point.clone());
        if point.path.len() < best.path.len() {
            *best = point;
        }
    }
    let mut points: Vec<_> = by_device.into_values().collect();
    points.sort_by(|a, b| a.path.cmp(&b.path));
    points
}

fn holds_data(device: &str, path: &str, filesystem: &str) -> bool {
    // Images of packages are full by nature.
    let image = filesystem == "squashfs" || device.starts_with("/dev/loop");
    let local = device.starts_with("/dev/") || LOCAL.contains(&filesystem);
    path.starts_with('/') && local && !image && !filesystem.starts_with("fuse.")
}

/// Spaces, tabs, newlines and backslashes are written in octal there (`proc_mounts(5)`).
fn unescape(word: &str) -> String {
    let plain = [
        (r"\040", " "),
        (r"\011", "\t"),
        (r"\012", "\n"),
        (r"\043", "#"),
        (r"\134", r"\"),
    ];
    plain.iter().fold(word.to_owned(), |word, (code, plain)| {
        word.replace(code, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_file_systems_that_hold_data_each_once() {
        let text = "proc /proc proc rw 0 0\n\
            /dev/vda / ext4 rw,relatime 0 0\n\
            tmpfs /dev/shm tmpfs rw 0 0\n\
            /dev/vda /var/lib/bound ext4 rw 0 0\n\
            /dev/sdb1 /srv/my\\040photos xfs rw 0 0\n\
            nas:/export /mnt/nas nfs4 rw 0 0\n\
            //nas/x /mnt/smb cifs rw 0 0\n\
            tank/data /tank zfs rw 0 0\n\
            /dev/loop3 /snap/core squashfs ro 0 0\n\
            /dev/fuse /run/user/0/doc fuse.portal rw 0 0\n\
            sshfs /mnt/ssh fuse.sshfs rw 0 0\n";
        let points = mount_points(text);
        let points: Vec<_> = points
            .iter()
            .map(|p| (p.path.as_str(), p.filesystem.as_str()))
            .collect();
        assert_eq!(
            points,
            [("/", "ext4"), ("/srv/my photos", "xfs"), ("/tank", "zfs")]
        );
    }

    #[test]
    fn odd_input_is_nothing() {
        for text in [
            "",
            "\n",
            "/dev/sda",
            "/dev/sda /",
            "/dev/sda none ext4",
            "\u{fffd} \u{fffd}",
        ] {
            assert!(mount_points(text).is_empty(), "{text}");
        }
        assert!(mounts("/dev/sda /no/such/place ext4 rw 0 0").is_empty());
    }

    #[test]
    fn the_root_has_a_size() {
        let root = mounts("/dev/root / ext4 rw 0 0\n");
        assert!(root[0].total_bytes >= root[0].available_bytes);
        assert!((0.0..=100.0).contains(&root[0].used_percent), "{root:?}");
    }
}
