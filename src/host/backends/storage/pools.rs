//! Parses the state of ZFS pools and btrfs devices.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A ZFS pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ZfsPool {
    /// Its name.
    pub name: String,
    /// `ONLINE` if it is healthy, otherwise `DEGRADED`, `FAULTED` and the like.
    pub health: String,
    /// Its size in bytes.
    pub total_bytes: u64,
    /// The used bytes.
    pub used_bytes: u64,
    /// The fragmentation of its free space in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragmented_percent: Option<u64>,
}

/// A device of a btrfs file system, with its errors since the last reset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BtrfsDevice {
    /// Where the file system is mounted.
    pub path: String,
    /// The device.
    pub device: String,
    /// Failed writes.
    pub write_errors: u64,
    /// Failed reads.
    pub read_errors: u64,
    /// Failed flushes.
    pub flush_errors: u64,
    /// Blocks with a wrong checksum.
    pub corruption_errors: u64,
    /// Blocks of an unexpected generation.
    pub generation_errors: u64,
}

impl ZfsPool {
    /// Returns its problem, if it has one.
    pub fn problem(&self) -> Option<String> {
        let Self { name, health, .. } = self;
        (health != "ONLINE").then(|| format!("the ZFS pool {name} is {health}"))
    }
}

impl BtrfsDevice {
    /// Returns its problem, if it has one.
    pub fn problem(&self) -> Option<String> {
        let all = [
            self.write_errors,
            self.read_errors,
            self.flush_errors,
            self.corruption_errors,
            self.generation_errors,
        ];
        let sum: u64 = all.iter().sum();
        let Self { path, device, .. } = self;
        (sum > 0).then(|| format!("btrfs at {path}: {device} has {sum} errors"))
    }
}

/// Parses `zpool list -Hp -o name,health,size,allocated,fragmentation`.
pub fn zfs(output: &str) -> Vec<ZfsPool> {
    let pools = output.lines().filter_map(|line| {
        let words: Vec<&str> = line.split('\t').collect();
        let [name, health, size, allocated, fragmented] = words.as_slice() else {
            return None;
        };
        Some(ZfsPool {
            name: (*name).to_owned(),
            health: (*health).to_owned(),
            total_bytes: size.parse().unwrap_or(0),
            used_bytes: allocated.parse().unwrap_or(0),
            fragmented_percent: fragmented.trim_end_matches('%').parse().ok(),
        })
    });
    pools.collect()
}

/// Parses `btrfs --format json device stats`, whose numbers are strings in older versions.
pub fn btrfs(path: &str, output: &str) -> Vec<BtrfsDevice> {
    let report: Value = serde_json::from_str(output).unwrap_or_default();
    let devices = report.get("device-stats").and_then(Value::as_array);
    let devices = devices.into_iter().flatten().filter_map(|one| {
        let number = |name: &str| match one.get(name) {
            Some(Value::String(text)) => text.parse().unwrap_or(0),
            Some(value) => value.as_u64().unwrap_or(0),
            None => 0,
        };
        Some(BtrfsDevice {
            path: path.to_owned(),
            device: one.get("device")?.as_str()?.to_owned(),
            write_errors: number("write_io_errs"),
            read_errors: number("read_io_errs"),
            flush_errors: number("flush_io_errs"),
            corruption_errors: number("corruption_errs"),
            generation_errors: number("generation_errs"),
        })
    });
    devices.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_of_zfs_are_read() {
        // In the format of zpool 2.1 (zpool-list(8), -H and -p): a healthy pool and one that lacks
        // a disk.
        let output = "tank\tONLINE\t3985729650688\t1992864825344\t7\nold\tDEGRADED\t1000\t10\t-\n";
        let pools = zfs(output);
        assert_eq!(
            (pools[0].used_bytes, pools[0].fragmented_percent),
            (1_992_864_825_344, Some(7))
        );
        assert_eq!(pools[0].problem(), None);
        assert_eq!(
            pools[1].problem().as_deref(),
            Some("the ZFS pool old is DEGRADED")
        );
        assert_eq!(zfs("no pools available\n"), []);
    }

    #[test]
    fn devices_of_btrfs_are_read() {
        // Recorded from btrfs-progs 6.2, with changed numbers and mount point.
        let output = r#"{"__header":{"version":"1"},"device-stats":[{"device":"/dev/sdb","devid":"1","write_io_errs":"0",
            "read_io_errs":"2","flush_io_errs":"0","corruption_errs":"5","generation_errs":"0"}]}"#;
        let devices = btrfs("/srv", output);
        assert_eq!(devices[0].corruption_errors, 5);
        assert_eq!(
            devices[0].problem().as_deref(),
            Some("btrfs at /srv: /dev/sdb has 7 errors")
        );
        let newer = btrfs(
            "/srv",
            r#"{"device-stats":[{"device":"/dev/sdb","write_io_errs":0}]}"#,
        );
        assert_eq!((newer.len(), newer[0].problem()), (1, None));
        assert_eq!(btrfs("/srv", "ERROR: cannot check"), []);
    }
}
