//! The host's processes with the highest usage, as the helper reads them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::container_ref::ContainerRef;

/// The resource to sort processes by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProcessOrder {
    /// Current CPU time.
    #[default]
    Cpu,
    /// Memory.
    Memory,
}

/// The processes with the highest usage, and the total number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsageList {
    /// The processes, the highest usage first.
    pub processes: Vec<ProcessUsage>,
    /// The total number of processes, including kernel threads.
    pub total: u32,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Its process id.
    pub pid: i32,
    /// Its parent's process id.
    pub parent: i32,
    /// Its user id.
    pub uid: u32,
    /// Its state, `R`, `S`, `D` and so on, as in proc(5).
    pub state: char,
    /// Its name.
    pub name: String,
    /// The beginning of its command line, arguments separated by a space, without text that looks like a secret.
    pub command: String,
    /// The CPU time used since an earlier sample, at most 10 seconds ago, in percent of one CPU.
    pub cpu_percent: f64,
    /// Resident memory (RSS), private and shared, in bytes.
    pub memory_bytes: u64,
    /// Its number of threads.
    pub threads: u32,
    /// Its age in seconds.
    pub age_s: u64,
    /// Its cgroup, version 2, from the root of the host.
    pub cgroup: String,
    /// The container that it is in, as far as the helper knows the container's cgroup.
    #[serde(default)]
    pub container: Option<ContainerRef>,
}
