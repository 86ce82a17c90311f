//! From two readings of counters to a sample.

use std::time::Duration;

use crate::backends::{ContainerDelays, ContainerUsage, HostCounters, MeasuredContainer, Vitals};
use gatewren_store::history::{UsageMetric, UsageSample};

/// A container's counters at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerReading {
    /// The process id of its init; another one means that the counters have begun again.
    pub init_pid: u32,
    /// Its usage.
    pub usage: ContainerUsage,
    /// What its processes waited for.
    pub delays: ContainerDelays,
}

/// The host's counters at two times.
#[derive(Debug, Clone, Copy)]
pub struct HostReading {
    /// The earlier ones.
    pub before: HostCounters,
    /// The later ones.
    pub after: HostCounters,
    /// The time in between.
    pub elapsed: Duration,
    /// How full the fullest file system is, in percent.
    pub disk_percent: Option<f64>,
}

impl From<&MeasuredContainer> for ContainerReading {
    fn from(measured: &MeasuredContainer) -> Self {
        Self {
            init_pid: measured.init_pid,
            usage: measured.usage,
            delays: measured.delays,
        }
    }
}

impl From<&Vitals> for ContainerReading {
    fn from(vitals: &Vitals) -> Self {
        Self {
            init_pid: vitals.init_pid,
            usage: vitals.usage,
            delays: vitals.delays,
        }
    }
}

/// The growth of counters over a time.
#[derive(Debug, Clone, Copy)]
struct Growth {
    elapsed_s: f64,
}

impl Growth {
    /// Units per second; `None` if the counter is missing or has begun again.
    fn rate(self, before: Option<u64>, after: Option<u64>) -> Option<f64> {
        let grown = after?.checked_sub(before?)?;
        (self.elapsed_s > 0.0).then(|| float(grown) / self.elapsed_s)
    }

    /// A counter of microseconds as a share of the time, in percent.
    fn percent(self, before: Option<u64>, after: Option<u64>) -> Option<f64> {
        Some(self.rate(before, after)? / 10_000.0)
    }

    /// A counter of microseconds that cannot grow faster than time: in percent, at most 100.
    fn share(self, before: Option<u64>, after: Option<u64>) -> Option<f64> {
        Some(self.percent(before, after)?.min(100.0))
    }
}

/// Returns the sample between two readings of a container; empty if it was restarted in between.
pub fn container_sample(
    before: &ContainerReading,
    after: &ContainerReading,
    elapsed: Duration,
) -> UsageSample {
    let mut sample = UsageSample::default();
    if before.init_pid != after.init_pid {
        return sample;
    }
    let growth = Growth {
        elapsed_s: elapsed.as_secs_f64(),
    };
    let (old, new) = (&before.usage, &after.usage);
    let cache = new.memory_cache_bytes.unwrap_or(0);
    let memory = new.memory_bytes.map(|used| used.saturating_sub(cache));
    let io = |of: fn(&ContainerUsage) -> Option<u64>| growth.rate(of(old), of(new));
    let cpu = growth.percent(old.cpu_usage_us, new.cpu_usage_us);
    let limit = new.memory_limit_bytes.map(float);
    let (received, sent) = (
        io(|usage| usage.network_received_bytes),
        io(|usage| usage.network_sent_bytes),
    );
    for (metric, value) in [
        (UsageMetric::CpuPercent, cpu),
        (UsageMetric::MemoryBytes, memory.map(float)),
        (UsageMetric::MemoryLimitBytes, limit),
        (UsageMetric::IoReadBytesS, io(|usage| usage.io_read_bytes)),
        (UsageMetric::IoWriteBytesS, io(|usage| usage.io_write_bytes)),
        (UsageMetric::NetworkReceivedBytesS, received),
        (UsageMetric::NetworkSentBytesS, sent),
    ] {
        sample.set(metric, value);
    }
    add_delays(&mut sample, growth, &before.delays, &after.delays);
    sample
}

/// Adds what a container's processes waited for.
fn add_delays(
    sample: &mut UsageSample,
    growth: Growth,
    before: &ContainerDelays,
    after: &ContainerDelays,
) {
    let stopped_us = |delays: &ContainerDelays| {
        let periods = delays.cpu_throttled_periods?;
        periods.checked_mul(delays.cpu_period_us?)
    };
    let waits_for = |of: fn(&ContainerDelays) -> Option<u64>| growth.share(of(before), of(after));
    let kills = || after.oom_kills?.checked_sub(before.oom_kills?).map(float);
    let throttled = growth.share(stopped_us(before), stopped_us(after));
    let (cpu, memory, io) = (
        waits_for(|delays| delays.cpu_waited_us),
        waits_for(|delays| delays.memory_waited_us),
        waits_for(|delays| delays.io_waited_us),
    );
    for (metric, value) in [
        (UsageMetric::CpuThrottledPercent, throttled),
        (UsageMetric::CpuPressurePercent, cpu),
        (UsageMetric::MemoryPressurePercent, memory),
        (UsageMetric::IoPressurePercent, io),
        (UsageMetric::OomKills, kills()),
    ] {
        sample.set(metric, value);
    }
}

/// Returns the sample between two readings of the host.
pub fn host_sample(reading: &HostReading) -> UsageSample {
    let HostReading {
        before,
        after,
        elapsed,
        disk_percent,
    } = reading;
    let growth = Growth {
        elapsed_s: elapsed.as_secs_f64(),
    };
    let io = |of: fn(&HostCounters) -> u64| growth.rate(Some(of(before)), Some(of(after)));
    let waits_for = |of: fn(&HostCounters) -> Option<u64>| growth.share(of(before), of(after));
    let kills = || after.oom_kills?.checked_sub(before.oom_kills?).map(float);
    let mut sample = UsageSample::default();
    for (metric, value) in [
        (
            UsageMetric::CpuPercent,
            Some(after.cpu.percent_since(before.cpu)),
        ),
        (UsageMetric::MemoryBytes, Some(float(after.memory_bytes))),
        (
            UsageMetric::MemoryLimitBytes,
            Some(float(after.memory_total_bytes)),
        ),
        (UsageMetric::IoReadBytesS, io(|host| host.io_read_bytes)),
        (UsageMetric::IoWriteBytesS, io(|host| host.io_write_bytes)),
        (
            UsageMetric::NetworkReceivedBytesS,
            io(|host| host.network_received_bytes),
        ),
        (
            UsageMetric::NetworkSentBytesS,
            io(|host| host.network_sent_bytes),
        ),
        (
            UsageMetric::CpuPressurePercent,
            waits_for(|host| host.cpu_waited_us),
        ),
        (
            UsageMetric::MemoryPressurePercent,
            waits_for(|host| host.memory_waited_us),
        ),
        (
            UsageMetric::IoPressurePercent,
            waits_for(|host| host.io_waited_us),
        ),
        (UsageMetric::OomKills, kills()),
        (UsageMetric::Load, after.load),
        (UsageMetric::DiskPercent, *disk_percent),
    ] {
        sample.set(metric, value);
    }
    sample
}

#[expect(clippy::cast_precision_loss, reason = "a sample keeps three digits")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(cpu_us: u64, throttled_periods: u64) -> ContainerReading {
        ContainerReading {
            init_pid: 7,
            usage: ContainerUsage {
                cpu_usage_us: Some(cpu_us),
                memory_bytes: Some(900),
                memory_cache_bytes: Some(400),
                ..ContainerUsage::default()
            },
            delays: ContainerDelays {
                cpu_period_us: Some(100_000),
                cpu_throttled_periods: Some(throttled_periods),
                ..ContainerDelays::default()
            },
        }
    }

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_sample_is_the_growth_over_the_time() {
        let sample = container_sample(&reading(5_000_000, 100), &reading(35_000_000, 358), MINUTE);
        assert_eq!(sample.get(UsageMetric::CpuPercent), Some(50.0));
        assert_eq!(sample.get(UsageMetric::CpuThrottledPercent), Some(43.0));
        assert_eq!(sample.get(UsageMetric::MemoryBytes), Some(500.0));
        assert_eq!(sample.get(UsageMetric::IoReadBytesS), None);
        let most = container_sample(&reading(0, 0), &reading(0, 9999), MINUTE);
        assert_eq!(most.get(UsageMetric::CpuThrottledPercent), Some(100.0));
    }

    #[test]
    fn counters_that_began_again_are_a_gap() {
        let back = container_sample(&reading(35_000_000, 5), &reading(5, 9), MINUTE);
        assert_eq!(back.get(UsageMetric::CpuPercent), None);
        assert_eq!(back.get(UsageMetric::MemoryBytes), Some(500.0));
        let other = ContainerReading {
            init_pid: 8,
            ..reading(70_000_000, 5)
        };
        assert!(container_sample(&reading(5, 5), &other, MINUTE).is_empty());
    }
}
