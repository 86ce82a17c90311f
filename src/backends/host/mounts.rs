//! The file systems that hold data, and how full they are.

use schemars::JsonSchema;
use serde::Serialize;

use super::mount_points::{Data, MountPoint, mount_points};
use super::seen::Seen;
use super::usage::percent;

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

/// How full a file system is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Fullness {
    /// What a program without special rights may still write, in bytes.
    pub available_bytes: u64,
    /// As `df` counts: what is reserved for root counts as full.
    pub used_percent: f64,
}

/// A mounted file system, with its sizes where they can be had.
pub type Mounted = (MountPoint, Option<Mount>);

impl Mount {
    /// How full it is.
    pub fn space(&self) -> Fullness {
        Fullness {
            available_bytes: self.available_bytes,
            used_percent: self.used_percent,
        }
    }
}

/// The file systems on this machine's disks with their sizes, sorted by path.
pub fn mounts(seen: &Seen) -> Vec<Mount> {
    let all = mounted(seen).into_iter();
    all.filter(|(point, _)| point.data == Data::Disk)
        .filter_map(|(_, mount)| mount)
        .collect()
}

/// The file systems that hold data, sorted by path, with their sizes where they can be had.
///
/// Those on the network have none: to ask one whose server is gone would hang.
pub fn mounted(seen: &Seen) -> Vec<Mounted> {
    let points = mount_points(&seen.mountinfo).into_iter();
    let points = points.map(|point| (measured(&point, seen), point));
    points.map(|(mount, point)| (point, mount)).collect()
}

/// With its sizes; nothing where they cannot be had.
fn measured(point: &MountPoint, seen: &Seen) -> Option<Mount> {
    if point.data == Data::Network {
        return None;
    }
    let space = seen.space(&point.path)?;
    let used = space.total_bytes.saturating_sub(space.free_bytes);
    (space.total_bytes > 0).then(|| Mount {
        path: point.path.clone(),
        filesystem: point.filesystem.clone(),
        total_bytes: space.total_bytes,
        available_bytes: space.available_bytes,
        used_percent: percent(used, used.saturating_add(space.available_bytes)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_measured_is_nothing() {
        assert!(
            mounts(&Seen::by_ourselves(
                "1 2 8:1 / /no/such/place rw - ext4 /dev/sda rw"
            ))
            .is_empty()
        );
        // To ask it would hang.
        assert!(mounts(&Seen::by_ourselves("1 2 0:50 / / rw - nfs4 nas:/export rw")).is_empty());
    }

    #[test]
    fn the_root_has_a_size() {
        let root = mounts(&Seen::by_ourselves("1 2 8:1 / / rw - ext4 /dev/root rw\n"));
        assert!(root[0].total_bytes >= root[0].available_bytes);
        assert!((0.0..=100.0).contains(&root[0].used_percent), "{root:?}");
    }
}
