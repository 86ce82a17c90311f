//! One sample: a value for each metric that could be measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum UsageMetric {
    /// CPU use: of a container in percent of one CPU, of the host in percent of all.
    CpuPercent,
    /// The share of the time in which the CPU limit stopped the container at some moment of its period of 100 ms.
    CpuThrottledPercent,
    /// Memory in use, without what the kernel can reclaim at once.
    MemoryBytes,
    /// The container's memory limit, or the host's memory.
    MemoryLimitBytes,
    /// Bytes read from disks per second.
    IoReadBytesS,
    /// Bytes written to disks per second.
    IoWriteBytesS,
    /// Bytes received per second.
    NetworkReceivedBytesS,
    /// Bytes sent per second.
    NetworkSentBytesS,
    /// The share of the time in which a process waited for a CPU (PSI, `some`).
    CpuPressurePercent,
    /// The same for memory.
    MemoryPressurePercent,
    /// The same for disks.
    IoPressurePercent,
    /// Processes killed in a minute because memory was used up.
    OomKills,
    /// The host's load average over one minute.
    Load,
    /// How full the host's fullest file system is.
    DiskPercent,
}

/// A value for each metric; `None` where it could not be measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageSample([Option<f64>; UsageMetric::ALL.len()]);

impl UsageMetric {
    /// All metrics, in the order of the file.
    pub const ALL: [Self; 14] = [
        Self::CpuPercent,
        Self::CpuThrottledPercent,
        Self::MemoryBytes,
        Self::MemoryLimitBytes,
        Self::IoReadBytesS,
        Self::IoWriteBytesS,
        Self::NetworkReceivedBytesS,
        Self::NetworkSentBytesS,
        Self::CpuPressurePercent,
        Self::MemoryPressurePercent,
        Self::IoPressurePercent,
        Self::OomKills,
        Self::Load,
        Self::DiskPercent,
    ];

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuPercent => "cpu_percent",
            Self::CpuThrottledPercent => "cpu_throttled_percent",
            Self::MemoryBytes => "memory_bytes",
            Self::MemoryLimitBytes => "memory_limit_bytes",
            Self::IoReadBytesS => "io_read_bytes_s",
            Self::IoWriteBytesS => "io_write_bytes_s",
            Self::NetworkReceivedBytesS => "network_received_bytes_s",
            Self::NetworkSentBytesS => "network_sent_bytes_s",
            Self::CpuPressurePercent => "cpu_pressure_percent",
            Self::MemoryPressurePercent => "memory_pressure_percent",
            Self::IoPressurePercent => "io_pressure_percent",
            Self::OomKills => "oom_kills",
            Self::Load => "load",
            Self::DiskPercent => "disk_percent",
        }
    }

    /// How many units of the file are one unit of the metric. Values are kept with three digits.
    pub(super) fn scale(self) -> f64 {
        match self {
            Self::CpuPercent
            | Self::CpuThrottledPercent
            | Self::CpuPressurePercent
            | Self::MemoryPressurePercent
            | Self::IoPressurePercent
            | Self::OomKills
            | Self::Load
            | Self::DiskPercent => 100.0,
            _ => 1.0,
        }
    }
}

impl UsageSample {
    /// Returns the value of a metric.
    pub fn get(&self, metric: UsageMetric) -> Option<f64> {
        let at = UsageMetric::ALL.iter().position(|one| *one == metric)?;
        self.0.get(at).copied().flatten()
    }

    /// Sets the value of a metric. A negative value, or one that is not finite, counts as not measured.
    pub fn set(&mut self, metric: UsageMetric, value: Option<f64>) {
        let at = UsageMetric::ALL.iter().position(|one| *one == metric);
        if let Some(slot) = at.and_then(|at| self.0.get_mut(at)) {
            *slot = value.filter(|value| value.is_finite() && *value >= 0.0);
        }
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}
