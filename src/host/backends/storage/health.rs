//! The health of the disks: SMART, md, ZFS and btrfs.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Capture, DiskName, Operation, OperationEnd};
use gatewren_base::sys::unescape_mount;

use super::super::error::BackendError;
use super::super::request::limits;
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

/// The health of the host's disks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DiskHealth {
    /// Current or imminent problems, one sentence each; empty if none are known.
    pub problems: Vec<String>,
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
            smart: None,
            md,
            zfs: Vec::new(),
            btrfs: Vec::new(),
        };
        if is_available("smartctl") {
            let mut disks = Vec::new();
            for disk in self.smart_candidates() {
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
        if is_available("btrfs") {
            for path in self.mount_points_of("btrfs") {
                let operation = Operation::HostBtrfs { path: path.clone() };
                let output = self.query(operation, reference).await?;
                health.btrfs.extend(btrfs(&path, &output));
            }
        }
        health.problems = problems(&health);
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
