//! A full disk: samples are lost with an error, and those that were kept stay readable.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use gatewren_base::sys::{Scratch, skip};

use super::error::UsageHistoryError;
use super::points::UsageRange;
use super::sample::{UsageMetric, UsageSample};
use super::store::{UsageHistory, UsageTick};

/// A small temporary file system; unmounted on drop.
struct SmallDisk(Scratch);

impl SmallDisk {
    /// Returns `None`, after reporting a skip, where no file system can be mounted.
    fn new() -> Option<Self> {
        let disk = Self(Scratch::new());
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]);
        let mounted = mount.arg(disk.0.path()).output();
        if mounted.is_ok_and(|mounted| mounted.status.success()) {
            return Some(disk);
        }
        skip("a small file system cannot be mounted here: that needs root");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a failing test may still have files open there.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

fn tick(minute: u64) -> UsageTick {
    let mut sample = UsageSample::default();
    for metric in UsageMetric::ALL {
        sample.set(metric, Some(5.0));
    }
    UsageTick {
        at_s: 1_785_196_800 + minute * 60,
        host: Some(sample),
        containers: Vec::new(),
    }
}

#[test]
fn samples_are_lost_while_the_disk_is_full_and_written_again_afterwards() {
    let Some(disk) = SmallDisk::new() else { return };
    let path = disk.0.join("usage.db");
    let history = UsageHistory::at(path.clone());
    history.add(&tick(0)).unwrap();
    let filling = disk.0.join("filling");
    let mut file = fs::File::create(&filling).unwrap();
    while file.write_all(&[b'x'; 512]).is_ok() {}
    let refused = (1..500).find_map(|minute| history.add(&tick(minute)).err());
    assert_eq!(refused, Some(UsageHistoryError::Full(path)));
    let range = UsageRange {
        since_s: 1_785_196_800,
        until_s: 1_785_196_860,
        now_s: 1_785_196_860,
        points: 1,
    };
    assert_eq!(history.host(range).unwrap().len(), 1);
    drop(file);
    fs::remove_file(filling).unwrap();
    history.add(&tick(600)).unwrap();
}
