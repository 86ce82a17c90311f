//! The report on the host's own file systems: the largest directories, and what can be deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatewren_base::sys::source::text;
use gatewren_base::sys::unescape_mount;
use gatewren_wire::operations::{DirectorySize, HostDiskReport, OperationEnd, OperationRefusal};

use super::host_items::host_items;
use super::measure::{CountedSizes, SizeRequest, count};
use crate::context::operation_context::OperationContext;
use crate::context::orphans::Orphans;
use crate::processes::answers::line;
use crate::processes::commands::require_root;
use crate::processes::printing::print;

/// How long the directories are counted. Of a disk that takes longer, the rest is missing.
const TIME: Duration = Duration::from_secs(25);

/// How many levels of directories are listed.
const DEPTH: u8 = 4;

/// The least size of a listed directory.
const LEAST_BYTES: u64 = 32 << 20;

/// The most listed directories, the largest.
const MAX_DIRECTORIES: usize = 100;

/// The kinds of file systems on the host's own disks.
const LOCAL: [&str; 13] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "vfat", "exfat", "ntfs3", "jfs",
    "bcachefs", "fuseblk",
];

/// Prints the report.
pub async fn report(context: &mut OperationContext<'_>) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let orphans = context.helper.orphans.clone();
    let collected = context.relay.wait(Box::pin(collect(&orphans))).await;
    let report = match collected {
        Ok(report) => report?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    print(context.relay, move || Ok(line(&report))).await
}

async fn collect(orphans: &Arc<Orphans>) -> Result<HostDiskReport, OperationRefusal> {
    let table = text("/proc/self/mountinfo").unwrap_or_default();
    let request = SizeRequest {
        paths: local_mounts(&table),
        depth: DEPTH,
        least_bytes: LEAST_BYTES,
        time: TIME,
    };
    let (counted, items) = tokio::join!(count(request, orphans), host_items(orphans));
    let CountedSizes { sizes, is_complete } = counted?;
    Ok(HostDiskReport {
        directories: most_telling(sizes),
        items,
        incomplete: !is_complete,
    })
}

/// Returns where the host's own file systems are mounted, each once.
fn local_mounts(mountinfo: &str) -> Vec<String> {
    let mut by_device: BTreeMap<&str, String> = BTreeMap::new();
    for line in mountinfo.lines() {
        let Some((mount, filesystem)) = line.split_once(" - ") else {
            continue;
        };
        let mut fields = mount.split(' ').skip(2);
        let (Some(device), Some(place)) = (fields.next(), fields.nth(1)) else {
            continue;
        };
        let kind = filesystem.split(' ').next().unwrap_or_default();
        // The root may be an overlay, as in a container; other overlays belong to containers.
        if !(LOCAL.contains(&kind) || kind == "overlay" && place == "/") {
            continue;
        }
        let place = unescape_mount(place);
        let shortest = by_device.entry(device).or_insert_with(|| place.clone());
        if place.len() < shortest.len() {
            *shortest = place;
        }
    }
    by_device.into_values().collect()
}

/// Returns the largest directories. One with nearly all of its content in one listed directory below it is left out,
/// since that one tells more.
fn most_telling(mut sizes: Vec<DirectorySize>) -> Vec<DirectorySize> {
    sizes.sort_by(|a, b| (b.bytes, &a.path).cmp(&(a.bytes, &b.path)));
    sizes.truncate(MAX_DIRECTORIES * 4);
    let is_explained = |outer: &DirectorySize| {
        let begins = format!("{}/", outer.path.trim_end_matches('/'));
        let mut inner = sizes.iter();
        outer.path == "/"
            || inner.any(|inner| {
                inner.path.starts_with(&begins)
                    && inner.path != outer.path
                    && inner.bytes >= outer.bytes / 10 * 9
            })
    };
    let telling = sizes.iter().filter(|size| !is_explained(size));
    telling.take(MAX_DIRECTORIES).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disk_is_counted_once_and_no_other_file_system() {
        let table = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            23 22 0:5 / /proc rw - proc proc rw\n\
            24 22 8:1 /srv /mnt/bind rw shared:1 - ext4 /dev/sda1 rw\n\
            25 22 8:17 / /srv/my\\040disk rw - xfs /dev/sdb1 rw\n\
            26 22 0:40 / /mnt/nas rw - nfs4 nas:/x rw\n\
            27 22 0:41 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n\
            broken line\n";
        assert_eq!(local_mounts(table), ["/", "/srv/my disk"]);
    }

    #[test]
    fn a_directory_that_only_holds_another_large_one_is_left_out() {
        let size = |path: &str, bytes| DirectorySize {
            path: path.to_owned(),
            bytes,
        };
        let found = most_telling(vec![
            size("/var/lib/media", 950),
            size("/var/lib", 1000),
            size("/var/log", 300),
            size("/var", 1400),
            size("/", 2000),
        ]);
        let paths: Vec<&str> = found.iter().map(|one| one.path.as_str()).collect();
        assert_eq!(paths, ["/var", "/var/lib/media", "/var/log"]);
    }
}
