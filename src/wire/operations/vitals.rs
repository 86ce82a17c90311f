//! The kernel's data about a running container, as the helper reads it.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::container_ref::ContainerRef;
use gatewren_base::sys::DiskSpace;

/// A running container as the kernel shows it; LXC is not queried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vitals {
    /// The container's name.
    pub container: ContainerRef,
    /// The host's process id of its first process.
    pub init_pid: u32,
    /// Whether its processes are frozen.
    pub frozen: bool,
    /// Its addresses except loopback and link-local ones, sorted.
    pub addresses: Vec<IpAddr>,
    /// Its open ports, sorted.
    pub listeners: Vec<ContainerListener>,
    /// Whether it shares the host's network: addresses and ports are then the host's.
    pub shares_host_network: bool,
    /// Its usage; empty in the frequent query for all containers.
    #[serde(default)]
    pub usage: ContainerUsage,
    /// What its processes waited for; empty in that query too.
    #[serde(default)]
    pub delays: ContainerDelays,
    /// The size of the file system of its root directory; absent in that query, and where it cannot be read safely.
    #[serde(default)]
    pub root_space: Option<DiskSpace>,
}

/// An open port.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct ContainerListener {
    /// The transport protocol.
    pub protocol: Transport,
    /// The port number.
    pub port: u16,
    /// The address it is bound to; `0.0.0.0` or `::` for all.
    pub address: IpAddr,
}

/// A transport protocol.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A container's usage and limits; values that the kernel does not count or limit are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ContainerUsage {
    /// Memory in use in bytes, including the kernel's file cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The part that is file cache and can mostly be reclaimed, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_cache_bytes: Option<u64>,
    /// The memory limit in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Swap space in use, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_bytes: Option<u64>,
    /// CPU time used since it started, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usage_us: Option<u64>,
    /// The part of it spent in programs, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_user_us: Option<u64>,
    /// The part of it spent in the kernel, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_system_us: Option<u64>,
    /// Time that its threads waited because of the CPU limit since it started, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_throttled_us: Option<u64>,
    /// The CPU limit in percent of one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_limit_percent: Option<u64>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u64>,
    /// The limit of processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_limit: Option<u64>,
    /// Bytes read from disks since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_read_bytes: Option<u64>,
    /// Bytes written to disks since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_write_bytes: Option<u64>,
    /// Bytes received by its network since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_received_bytes: Option<u64>,
    /// Bytes sent by its network since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_sent_bytes: Option<u64>,
}

/// Counters of what a container's processes waited for; values that the kernel does not count are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerDelays {
    /// The length of a period of the CPU limit, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_period_us: Option<u64>,
    /// The periods in which the CPU limit stopped it, since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_throttled_periods: Option<u64>,
    /// Microseconds in which a process of it waited for a CPU (PSI, `some`), since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_waited_us: Option<u64>,
    /// The same for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_waited_us: Option<u64>,
    /// The same for disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_waited_us: Option<u64>,
    /// The share of the last 10 seconds in which a process of it waited for a CPU (PSI, `avg10`), in hundredths of a
    /// percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_waits_now: Option<u64>,
    /// The same for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_waits_now: Option<u64>,
    /// The same for disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_waits_now: Option<u64>,
    /// Processes that the kernel killed because memory was used up, since it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_kills: Option<u64>,
}

/// The counters of a running container, for the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredContainer {
    /// The container.
    pub container: ContainerRef,
    /// The host's process id of its first process; another one means that its counters have begun again.
    pub init_pid: u32,
    /// Its usage.
    #[serde(default)]
    pub usage: ContainerUsage,
    /// What its processes waited for.
    #[serde(default)]
    pub delays: ContainerDelays,
}
