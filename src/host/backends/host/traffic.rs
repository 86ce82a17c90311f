//! Counters of network interfaces and disks, since the boot.

use schemars::JsonSchema;
use serde::Serialize;

/// Bytes of a sector in `/proc/diskstats`, whatever the disk's own sector size.
const SECTOR_BYTES: u64 = 512;

/// Prefixes of devices that are not physical disks.
const NO_DISKS: [&str; 5] = ["loop", "ram", "zram", "dm-", "md"];

/// The traffic of a network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NetworkTraffic {
    /// Its name.
    pub interface: String,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets received broken or dropped.
    pub rx_errors: u64,
    /// Packets that could not be sent.
    pub tx_errors: u64,
}

/// The traffic of a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskTraffic {
    /// Its name, such as `sda`.
    pub disk: String,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds in which it was busy.
    pub busy_ms: u64,
}

/// Parses `/proc/net/dev`, sorted by name.
pub fn traffic(dev: &str) -> Vec<NetworkTraffic> {
    let mut all: Vec<_> = dev.lines().filter_map(interface).collect();
    all.sort_by(|a, b| a.interface.cmp(&b.interface));
    all
}

/// Parses `/proc/diskstats`, sorted by name; only whole disks that were used, without partitions.
pub fn disks(diskstats: &str) -> Vec<DiskTraffic> {
    let mut all: Vec<_> = diskstats.lines().filter_map(disk).collect();
    all.sort_by(|a, b| a.disk.cmp(&b.disk));
    let names: Vec<String> = all.iter().map(|disk| disk.disk.clone()).collect();
    all.retain(|disk| !names.iter().any(|whole| is_partition(&disk.disk, whole)));
    all
}

fn interface(line: &str) -> Option<NetworkTraffic> {
    let (name, counters) = line.split_once(':')?;
    let counters: Vec<u64> = counters
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    let sum = |at: [usize; 2]| {
        let [errors, drops] = at.map(|at| counters.get(at).copied());
        Some(errors?.saturating_add(drops?))
    };
    Some(NetworkTraffic {
        interface: name.trim().to_owned(),
        rx_bytes: *counters.first()?,
        tx_bytes: *counters.get(8)?,
        rx_errors: sum([2, 3])?,
        tx_errors: sum([10, 11])?,
    })
}

fn disk(line: &str) -> Option<DiskTraffic> {
    let mut words = line.split_whitespace().skip(2);
    let name = words.next()?;
    let counters: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let sectors = |index: usize| {
        counters
            .get(index)
            .map(|n: &u64| n.saturating_mul(SECTOR_BYTES))
    };
    let disk = DiskTraffic {
        disk: name.to_owned(),
        read_bytes: sectors(2)?,
        written_bytes: sectors(6)?,
        busy_ms: *counters.get(9)?,
    };
    let used = disk.read_bytes > 0 || disk.written_bytes > 0;
    let real = !NO_DISKS.iter().any(|kind| name.starts_with(kind));
    (used && real).then_some(disk)
}

/// `sda1` is a partition of `sda`, `nvme0n1p2` of `nvme0n1`; `sdab` is another disk.
fn is_partition(name: &str, whole: &str) -> bool {
    let Some(rest) = name.strip_prefix(whole) else {
        return false;
    };
    let number = if whole.ends_with(|c: char| c.is_ascii_digit()) {
        rest.strip_prefix('p').unwrap_or_default()
    } else {
        rest
    };
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 3933341   10221    0    0    0     0          0         0  3933341   10221    0    0    0     0       0          0
  eth0:584113094   17374    1    2    0     0          0         0  1375548   11282    3    4    0     0       0          0
";

    #[test]
    fn interfaces_are_sorted() {
        let found = traffic(DEV);
        let found: Vec<_> = found
            .iter()
            .map(|i| {
                let errors = (i.rx_errors, i.tx_errors);
                (i.interface.as_str(), i.rx_bytes, i.tx_bytes, errors)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("eth0", 584_113_094, 1_375_548, (3, 7)),
                ("lo", 3_933_341, 3_933_341, (0, 0))
            ]
        );
    }

    #[test]
    fn only_whole_disks_that_were_used() {
        let line =
            |name: &str, n: u64| format!("   8       0 {name} 1 2 {n} 4 5 6 {n} 8 9 10 11 0\n");
        let text = [
            "sdb",
            "sda",
            "sda1",
            "sdaa",
            "nvme0n1",
            "nvme0n1p2",
            "loop0",
            "zram0",
            "dm-0",
        ]
        .map(|name| line(name, 3))
        .concat();
        let found = disks(&(text + &line("sdc", 0)));
        let names: Vec<_> = found.iter().map(|disk| disk.disk.as_str()).collect();
        assert_eq!(names, ["nvme0n1", "sda", "sdaa", "sdb"]);
        assert_eq!(
            (
                found[0].read_bytes,
                found[0].written_bytes,
                found[0].busy_ms
            ),
            (1536, 1536, 10)
        );
    }

    #[test]
    fn odd_input_is_nothing() {
        for text in [
            "",
            ":",
            "eth0:",
            "eth0: 1 2 3",
            "eth0: x",
            "\u{fffd}\n\n",
            "a b",
            "8 0 sda 1 2",
        ] {
            assert!(traffic(text).is_empty(), "{text}");
            assert!(disks(text).is_empty(), "{text}");
        }
        let huge = disks(&format!("8 0 sda 1 1 {0} 1 1 1 {0} 1 1 1", u64::MAX));
        assert_eq!(huge[0].read_bytes, u64::MAX);
    }
}
