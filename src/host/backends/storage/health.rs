//! The health of the disks: SMART, md, ZFS and btrfs.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Capture, DiskName, Operation, OperationEnd};
use gatewren_base::sys::unescape_mount;

use super::super::error::BackendError;
use super::super::request::limits;
use super::super::unread::UnreadSource;
use super::disks::Storage;
use super::md::{MdArray, arrays};
use super::pools::{BtrfsDevice, ZfsPool, btrfs, zfs};
use super::smart::{SmartDisk, smart};

/// The timeout of one disk; a failing disk is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum number of disks that are queried.
const DISKS: usize = 64;

/// How much of an answer is kept.
const CAPTURE: Capture = Capture {
    head: 1024 * 1024,
    tail: 0,
};

/// The directories of the programs.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/bin", "/sbin"];

/// Why a file system was not examined.
const NO_ANSWER: &str = "its program (zpool, btrfs) is not installed or reported nothing";

/// The health of the host's disks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DiskHealth {
    /// Current or imminent problems of the examined parts, one sentence each.
    pub problems: Vec<String>,
    /// What was examined.
    pub examined: Vec<String>,
    /// What could not be examined: it may have problems.
    pub unread: Vec<UnreadSource>,
    /// The SMART data of each disk, sorted by name; absent if smartctl is not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart: Option<Vec<SmartDisk>>,
    /// RAID arrays (md), in the kernel's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub md: Vec<MdArray>,
    /// ZFS pools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub zfs: Vec<ZfsPool>,
    /// The devices of btrfs file systems, with their error counters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub btrfs: Vec<BtrfsDevice>,
}

impl Storage {
    /// Whether the host has any source of health data.
    pub fn has_health() -> bool {
        ["smartctl", "zpool", "btrfs"].into_iter().any(is_available)
            || Path::new("/proc/mdstat").exists()
    }

    /// Returns the health of every disk. A disk that cannot be queried does not fail the rest.
    ///
    /// # Errors
    /// When the owner's file does not allow it.
    pub async fn health(&self, reference: &str) -> Result<DiskHealth, BackendError> {
        let mut md = arrays(&self.tree.text("proc/mdstat").unwrap_or_default());
        for array in &mut md {
            let file = format!("sys/block/{}/md/mismatch_cnt", array.name);
            array.mismatches = self.tree.number(&file);
        }
        let mut health = DiskHealth {
            problems: Vec::new(),
            examined: Vec::new(),
            unread: Vec::new(),
            smart: None,
            md,
            zfs: Vec::new(),
            btrfs: Vec::new(),
        };
        let candidates = self.smart_candidates();
        if is_available("smartctl") {
            let mut disks = Vec::new();
            for disk in candidates.iter().cloned() {
                let name = disk.as_str().to_owned();
                let output = self.query(Operation::HostSmart { disk }, reference).await?;
                disks.push(smart(&name, &output));
            }
            health.smart = Some(disks);
        }
        if is_available("zpool") {
            let output = self.query(Operation::HostPools {}, reference).await?;
            health.zfs = zfs(&output);
        }
        let mut systems = FileSystems {
            has_zfs: !self.mount_points_of("zfs").is_empty(),
            btrfs: self.mount_points_of("btrfs"),
        };
        if is_available("btrfs") {
            for path in &systems.btrfs {
                let operation = Operation::HostBtrfs { path: path.clone() };
                let output = self.query(operation, reference).await?;
                health.btrfs.extend(btrfs(path, &output));
            }
        }
        systems
            .btrfs
            .retain(|path| health.btrfs.iter().all(|device| device.path != *path));
        health.problems = problems(&health);
        health.examined = examined(&health);
        health.unread = unread(&health, &candidates, &systems);
        Ok(health)
    }

    /// Returns a program's output whatever its exit code: smartctl's exit code is a part of its
    /// answer.
    async fn query(&self, operation: Operation, reference: &str) -> Result<String, BackendError> {
        let asked = self
            .helper
            .run(operation, limits(PATIENCE), reference, CAPTURE);
        let finished = asked.await?;
        match finished.ending {
            OperationEnd::Refused(refusal) => Err(refusal.into()),
            _ => Ok(finished.stdout.text_lossy()),
        }
    }

    /// Returns the disks that may have SMART data: no virtual ones.
    fn smart_candidates(&self) -> Vec<DiskName> {
        let mut names = self.tree.names("sys/block");
        names.retain(|name| {
            ["sd", "nvme", "hd"]
                .iter()
                .any(|kind| name.starts_with(kind))
        });
        names.sort();
        let names = names.into_iter().take(DISKS);
        names.filter_map(|name| name.try_into().ok()).collect()
    }

    /// Returns the mount points of file systems of a kind, one for each device.
    fn mount_points_of(&self, kind: &str) -> Vec<String> {
        let table = self.tree.text("proc/mounts").unwrap_or_default();
        let mut seen: Vec<(String, String)> = Vec::new();
        for line in table.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [source, place, found, ..] = words.as_slice() else {
                continue;
            };
            if *found == kind && seen.iter().all(|(known, _)| known != source) {
                let place = unescape_mount(place);
                seen.push(((*source).to_owned(), place));
            }
        }
        seen.into_iter()
            .map(|(_, place)| place)
            .take(DISKS)
            .collect()
    }
}

/// Whether a program is installed.
pub fn is_available(program: &str) -> bool {
    let mut places = PLACES.iter().map(|place| Path::new(place).join(program));
    places.any(|file| file.exists())
}

fn problems(health: &DiskHealth) -> Vec<String> {
    let smart = health.smart.iter().flatten().flat_map(SmartDisk::problems);
    let md = health.md.iter().filter_map(MdArray::problem);
    let zfs = health.zfs.iter().filter_map(ZfsPool::problem);
    let btrfs = health.btrfs.iter().filter_map(BtrfsDevice::problem);
    smart.chain(md).chain(zfs).chain(btrfs).collect()
}

/// The mounted file systems with several disks.
struct FileSystems {
    /// Whether there is one of ZFS.
    has_zfs: bool,
    /// The mount points of btrfs of which nothing was read.
    btrfs: Vec<String>,
}

fn examined(health: &DiskHealth) -> Vec<String> {
    let disks = health.smart.iter().flatten();
    let disks = disks.filter(|disk| disk.passed.is_some());
    let disks = disks.map(|disk| format!("SMART data of {}", disk.disk));
    let md = health
        .md
        .iter()
        .map(|array| format!("array {}", array.name));
    let zfs = health
        .zfs
        .iter()
        .map(|pool| format!("ZFS pool {}", pool.name));
    let btrfs = health.btrfs.iter();
    let btrfs = btrfs.map(|one| format!("btrfs device {} of {}", one.device, one.path));
    disks.chain(md).chain(zfs).chain(btrfs).collect()
}

/// Returns the parts that were not examined. Without it, no problems would look like good news.
fn unread(
    health: &DiskHealth,
    candidates: &[DiskName],
    systems: &FileSystems,
) -> Vec<UnreadSource> {
    let mut all = Vec::new();
    match &health.smart {
        _ if candidates.is_empty() => all.push(UnreadSource::new(
            "SMART data",
            "there is no disk that has it (sd*, hd*, nvme*); virtual disks have none",
        )),
        None => all.extend(candidates.iter().map(|disk| {
            let why = "smartctl is not installed: install smartmontools";
            UnreadSource::new(format!("SMART data of {}", disk.as_str()), why)
        })),
        Some(disks) => all.extend(disks.iter().filter_map(|disk| {
            let why = disk.note.as_deref()?;
            Some(UnreadSource::new(
                format!("SMART data of {}", disk.disk),
                why,
            ))
        })),
    }
    if systems.has_zfs && health.zfs.is_empty() {
        all.push(UnreadSource::new("ZFS pools", NO_ANSWER));
    }
    let silent = systems.btrfs.iter();
    all.extend(silent.map(|path| UnreadSource::new(format!("btrfs {path}"), NO_ANSWER)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing() -> DiskHealth {
        DiskHealth {
            problems: Vec::new(),
            examined: Vec::new(),
            unread: Vec::new(),
            smart: None,
            md: Vec::new(),
            zfs: Vec::new(),
            btrfs: Vec::new(),
        }
    }

    #[test]
    fn a_disk_that_was_not_examined_is_named() {
        let none = FileSystems {
            has_zfs: false,
            btrfs: Vec::new(),
        };
        let [first, second] = ["sda", "sdb"].map(|name| name.to_owned().try_into().unwrap());
        let disks: [DiskName; 2] = [first, second];
        let mut health = nothing();
        assert_eq!(unread(&health, &[], &none).len(), 1, "a virtual machine");
        let missing = unread(&health, &disks, &none);
        assert_eq!(missing.len(), 2);
        assert!(missing[1].why.contains("smartmontools"), "{missing:?}");
        let good = r#"{"smart_status":{"passed":true}}"#;
        health.smart = Some(vec![smart("sda", good), smart("sdb", "")]);
        assert_eq!(examined(&health), ["SMART data of sda"]);
        let asleep = unread(&health, &disks, &none);
        assert_eq!(asleep.len(), 1);
        assert_eq!(asleep[0].source, "SMART data of sdb");
        let pools = FileSystems {
            has_zfs: true,
            btrfs: vec!["/srv".to_owned()],
        };
        let sources: Vec<_> = unread(&health, &disks, &pools)
            .into_iter()
            .map(|one| one.source)
            .collect();
        assert_eq!(sources, ["SMART data of sdb", "ZFS pools", "btrfs /srv"]);
    }
}
