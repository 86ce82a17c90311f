//! The current metrics of the host.

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::HostTree;
use super::meminfo::{self, MemorySpace};
use super::mounts::{Mount, mounts};
use super::mounts_and_clock::MountsAndClock;
use super::temperatures::{SensorSelection, Temperature, temperatures};
use super::traffic::{DiskTraffic, NetworkTraffic, disks, traffic};
use super::usage::{self, CpuTime};

/// The metrics of the host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HostMetrics {
    /// The share of all processors that was busy since the last measurement, 0.2 to 10 seconds ago, in percent.
    pub cpu_percent: f64,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// How much work waited for resources; absent if the kernel does not measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The memory.
    pub memory: MemorySpace,
    /// The swap space, all zero if there is none.
    pub swap: MemorySpace,
    /// The local file systems, sorted by path.
    pub mounts: Vec<Mount>,
    /// The temperatures, sorted by sensor.
    pub temperatures: Vec<Temperature>,
    /// Counters of the network interfaces since the boot, sorted by name.
    pub network: Vec<NetworkTraffic>,
    /// Counters of the disks since the boot, sorted by name.
    pub disks: Vec<DiskTraffic>,
}

/// The share of the last ten seconds in which some work waited for a resource, in percent (PSI).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "every name includes the unit")]
pub struct Pressure {
    /// Waiting for a processor.
    pub cpu_percent: f64,
    /// Waiting for memory.
    pub memory_percent: f64,
    /// Waiting for a disk.
    pub io_percent: f64,
}

impl HostMetrics {
    /// The usage of the fullest file system in percent; `None` without any.
    pub fn fullest_disk(&self) -> Option<f64> {
        let used = self.mounts.iter().map(|mount| mount.used_percent);
        used.reduce(f64::max)
    }

    /// Returns the current metrics, with the CPU usage since `earlier`.
    pub fn since(tree: &HostTree, earlier: CpuTime, seen: &MountsAndClock) -> Self {
        let proc = |name: &str| tree.text(&format!("proc/{name}")).unwrap_or_default();
        let meminfo = proc("meminfo");
        Self {
            cpu_percent: cpu_time(tree).percent_since(earlier),
            load: usage::load(&proc("loadavg")).unwrap_or_default(),
            pressure: pressure(tree),
            memory: meminfo::memory(&meminfo),
            swap: meminfo::swap(&meminfo),
            mounts: mounts(seen),
            temperatures: temperatures(tree, SensorSelection::All),
            network: traffic(&proc("net/dev")),
            disks: disks(&proc("diskstats")),
        }
    }
}

/// Returns the processors' time up to now.
pub fn cpu_time(tree: &HostTree) -> CpuTime {
    tree.text("proc/stat")
        .and_then(|stat| CpuTime::parse(&stat))
        .unwrap_or_default()
}

fn pressure(tree: &HostTree) -> Option<Pressure> {
    let waited = |what: &str| {
        let text = tree.text(&format!("proc/pressure/{what}"))?;
        usage::some_avg10(&text)
    };
    Some(Pressure {
        cpu_percent: waited("cpu")?,
        memory_percent: waited("memory")?,
        io_percent: waited("io")?,
    })
}
