//! The host's counters, of which a history takes the differences. They are read from `/proc` without the helper.

use super::super::source::{HostTree, field};
use super::meminfo::memory;
use super::metrics::cpu_time;
use super::traffic::{disks, traffic};
use super::usage::{self, CpuTime};

/// Interfaces whose traffic passes another one too, or stays on this host.
const INNER_INTERFACES: [&str; 7] = ["lo", "veth", "br-", "docker", "podman", "lxcbr", "virbr"];

/// Counters since the boot, and the values of the moment; what the kernel does not count is absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostCounters {
    /// The processors' time.
    pub cpu: CpuTime,
    /// The number of processors.
    pub cpus: usize,
    /// Memory in use in bytes, without what the kernel can reclaim.
    pub memory_bytes: u64,
    /// The whole memory in bytes.
    pub memory_total_bytes: u64,
    /// The load average over one minute.
    pub load: Option<f64>,
    /// Bytes read from disks.
    pub io_read_bytes: u64,
    /// Bytes written to disks.
    pub io_write_bytes: u64,
    /// Bytes received.
    pub network_received_bytes: u64,
    /// Bytes sent.
    pub network_sent_bytes: u64,
    /// Microseconds in which a process waited for a CPU (PSI, `some`).
    pub cpu_waited_us: Option<u64>,
    /// The same for memory.
    pub memory_waited_us: Option<u64>,
    /// The same for disks.
    pub io_waited_us: Option<u64>,
    /// Processes killed because memory was used up.
    pub oom_kills: Option<u64>,
}

impl HostCounters {
    /// Reads the counters.
    pub(super) fn read(tree: &HostTree) -> Self {
        let proc = |name: &str| tree.text(&format!("proc/{name}")).unwrap_or_default();
        let space = memory(&proc("meminfo"));
        let waited = |what: &str| usage::some_total_us(&proc(&format!("pressure/{what}")));
        let outer = |name: &str| !INNER_INTERFACES.iter().any(|inner| name.starts_with(inner));
        let mut counters = Self {
            cpu: cpu_time(tree),
            cpus: usage::processors(&proc("stat")),
            memory_bytes: space.total_bytes.saturating_sub(space.available_bytes),
            memory_total_bytes: space.total_bytes,
            load: usage::load(&proc("loadavg")).map(|[minute, _, _]| minute),
            cpu_waited_us: waited("cpu"),
            memory_waited_us: waited("memory"),
            io_waited_us: waited("io"),
            oom_kills: field(&proc("vmstat"), "oom_kill", ' ').and_then(|n| n.parse().ok()),
            ..Self::default()
        };
        for disk in disks(&proc("diskstats")) {
            counters.io_read_bytes += disk.read_bytes;
            counters.io_write_bytes += disk.written_bytes;
        }
        for one in traffic(&proc("net/dev")) {
            if outer(&one.interface) {
                counters.network_received_bytes += one.rx_bytes;
                counters.network_sent_bytes += one.tx_bytes;
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use gatewren_base::sys::Scratch;

    #[test]
    fn the_hosts_counters_are_read_and_unknown_ones_are_absent() {
        let scratch = Scratch::new();
        let write = |name: &str, text: &str| {
            let path = scratch.join("proc").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("stat", "cpu 1 0 0 0\ncpu0 1 0 0 0\ncpu1 1 0 0 0\nintr 5\n");
        write("meminfo", "MemTotal: 8 kB\nMemAvailable: 2 kB\n");
        write("loadavg", "0.50 0.4 0.3 1/2 3\n");
        write(
            "pressure/io",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=42\n",
        );
        write("vmstat", "nr_free 1\noom_kill 3\n");
        let line = " 1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0\n";
        write(
            "net/dev",
            &format!("h\n eth0:{line} veth1:{line} lo:{line}"),
        );
        let found = HostCounters::read(&HostTree::below(scratch.path()));
        assert_eq!(found.cpus, 2);
        let expected = HostCounters {
            cpu: found.cpu,
            cpus: 2,
            memory_bytes: 6144,
            memory_total_bytes: 8192,
            load: Some(0.5),
            network_received_bytes: 1,
            network_sent_bytes: 2,
            io_waited_us: Some(42),
            oom_kills: Some(3),
            ..HostCounters::default()
        };
        assert_eq!(found, expected);
    }
}
