//! The invented usage of a demo: curves with a day's rhythm and some noise, the same at each start.

use std::f64::consts::TAU;

use super::made_up::{MadeUpServer, UsageShape};
use super::noise::noise;
use gatewren_owner::{ContainerSample, HostSample, SampleHistory};
use gatewren_store::history::{
    SampledContainer, UsageHistory, UsageHistoryError, UsageMetric, UsageSample, UsageTick,
};

const MINUTE_MS: u64 = 60_000;
const HOUR_MINUTES: u64 = 60;
const DAY_MINUTES: u64 = 24 * HOUR_MINUTES;
const WEEK_MINUTES: u64 = 7 * DAY_MINUTES;

/// Before the last day the history only has summaries of this length.
const QUARTER_MINUTES: usize = 15;

const MB: f64 = 1_000_000.0;
const KB: f64 = 1_000.0;

/// The time between the job that removes files and the current time of day, in minutes.
const NIGHTLY_MINUTE: u64 = 17 * HOUR_MINUTES;

/// How much a day adds to the fullest disk, in percent of its size.
const DISK_A_DAY: f64 = 3.0;

/// The values of one minute.
struct MinuteUsage {
    cpu: f64,
    memory: f64,
    received: f64,
    sent: f64,
}

impl UsageShape {
    /// The usage at a time before the start.
    fn at(&self, name: &str, minutes_ago: u64) -> MinuteUsage {
        let step = |length: u64, kind: &str| noise(&format!("{name}{kind}"), minutes_ago / length);
        let day = (float(minutes_ago) * TAU / float(DAY_MINUTES)).cos();
        let busy = 1.0 + 0.35 * day + 0.3 * (step(1, "a") - 0.5) + 0.4 * (step(25, "b") - 0.5);
        // A job of some minutes, now and then.
        let peak = if step(12, "c") > 0.93 { 1.8 } else { 0.0 };
        let memory = 1.0 + 0.06 * day + 0.03 * (step(40, "d") - 0.5) + 0.004 * step(1, "e");
        MinuteUsage {
            cpu: self.cpu * (busy + peak).max(0.1),
            memory: (self.memory_mb * memory).min(self.limit_mb * 0.98) * MB,
            received: self.network_kb * KB * (busy + 2.0 * peak).max(0.05),
            sent: self.network_kb * KB * 0.4 * (busy + peak).max(0.05),
        }
    }

    /// Whether it ran at that time.
    fn runs_at(&self, at_ms: u64) -> bool {
        self.stopped.is_none_or(|stopped| at_ms < stopped)
    }

    fn sample(&self, usage: &MinuteUsage) -> UsageSample {
        let mut sample = UsageSample::default();
        for (metric, value) in [
            (UsageMetric::CpuPercent, usage.cpu),
            (UsageMetric::MemoryBytes, usage.memory),
            (UsageMetric::MemoryLimitBytes, self.limit_mb * MB),
            (UsageMetric::NetworkReceivedBytesS, usage.received),
            (UsageMetric::NetworkSentBytesS, usage.sent),
        ] {
            sample.set(metric, Some(value));
        }
        sample
    }
}

/// Writes a week of samples.
///
/// # Errors
/// When the file cannot be written.
pub fn write_week(
    history: &UsageHistory,
    made_up: &MadeUpServer,
    now_ms: u64,
) -> Result<(), UsageHistoryError> {
    let quarters = (DAY_MINUTES + 1..WEEK_MINUTES)
        .rev()
        .step_by(QUARTER_MINUTES);
    for minutes_ago in quarters.chain((0..=DAY_MINUTES).rev()) {
        history.add(&tick(made_up, now_ms, minutes_ago))?;
    }
    Ok(())
}

/// The samples of all containers and of the host.
fn tick(made_up: &MadeUpServer, now_ms: u64, minutes_ago: u64) -> UsageTick {
    let at_ms = now_ms.saturating_sub(minutes_ago * MINUTE_MS);
    let running = made_up
        .containers
        .iter()
        .filter(|(_, container)| container.usage.runs_at(at_ms));
    let containers = running.map(|(name, container)| SampledContainer {
        name: name.clone(),
        sample: container
            .usage
            .sample(&container.usage.at(name, minutes_ago)),
    });
    let mut host = made_up.usage.sample(&made_up.usage.at("", minutes_ago));
    let disk = disk_percent(made_up, minutes_ago);
    host.set(UsageMetric::DiskPercent, Some(disk));
    UsageTick {
        at_s: at_ms / MINUTE_MS * 60,
        host: Some(host),
        containers: containers.collect(),
    }
}

/// The usage of the fullest disk: files are added all day, and a job removes old ones once a night.
fn disk_percent(made_up: &MadeUpServer, minutes_ago: u64) -> f64 {
    let since_job = (WEEK_MINUTES - minutes_ago + NIGHTLY_MINUTE) % DAY_MINUTES;
    let grown = float(since_job) / float(DAY_MINUTES);
    (made_up.disk_percent - DISK_A_DAY + DISK_A_DAY * grown).clamp(0.0, 100.0)
}

/// The last hour, as the pages keep it in memory.
pub fn last_hour(made_up: &MadeUpServer) -> SampleHistory {
    let minutes = || (0..HOUR_MINUTES).rev();
    let host = minutes().map(|minutes_ago| {
        let usage = made_up.usage.at("", minutes_ago);
        HostSample {
            cpu: usage.cpu,
            memory: 100.0 * usage.memory / (made_up.usage.limit_mb * MB),
            disk: disk_percent(made_up, minutes_ago),
            received: usage.received,
            sent: usage.sent,
        }
    });
    let running = made_up
        .containers
        .iter()
        .filter(|(_, container)| container.usage.stopped.is_none());
    let containers = running.map(|(name, container)| {
        let samples = minutes().map(|minutes_ago| {
            let usage = container.usage.at(name, minutes_ago);
            ContainerSample {
                cpu: usage.cpu,
                memory: usage.memory,
            }
        });
        (name.clone(), samples.collect())
    });
    SampleHistory {
        host: host.collect(),
        containers: containers.collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the minutes of a week are few")]
fn float(number: u64) -> f64 {
    number as f64
}
