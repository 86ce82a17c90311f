//! The rules that make sentences of numbers: why a container is slow, or does not run.

use std::time::Duration;

use super::table::{MetricOverTime, UsageTable};
use gatewren_base::sys::{DiskSpace, rfc3339};
use gatewren_host::backends::{ContainerState, EngineFacts};
use gatewren_store::history::UsageMetric;

/// From here on a share in percent counts as a finding.
const THROTTLED: f64 = 5.0;
const BUSY: f64 = 90.0;
const MUCH_OF_ONE_CPU: f64 = 50.0;
const NEARLY_FULL: f64 = 90.0;
const WAITS_FOR_CPU: f64 = 20.0;
const WAITS_FOR_MEMORY: f64 = 5.0;
const WAITS_FOR_DISKS: f64 = 15.0;

/// Swap space in use from which on it is a finding, in bytes.
const MUCH_SWAP: f64 = 64.0 * 1024.0 * 1024.0;

/// The facts about a container, for the rules.
#[derive(Debug, Default)]
pub struct ContainerEvidence {
    /// Its usage.
    pub usage: UsageTable,
    /// The time that its usage now was measured over.
    pub measured: Duration,
    /// Its CPU limit in percent of one CPU.
    pub cpu_limit_percent: Option<u64>,
    /// Swap space in use in bytes.
    pub swap_bytes: Option<u64>,
    /// Its processes and threads.
    pub pids: Option<u64>,
    /// The limit of them.
    pub pids_limit: Option<u64>,
    /// The file system of its root directory.
    pub root_space: Option<DiskSpace>,
}

/// The facts about the host, for the rules.
#[derive(Debug, Default)]
pub struct HostEvidence {
    /// Its usage.
    pub usage: UsageTable,
    /// Its processors.
    pub cpus: usize,
    /// Its file systems that are nearly full, and their usage in percent.
    pub full_filesystems: Vec<FullFilesystem>,
}

/// A file system that is nearly full.
#[derive(Debug, Clone, PartialEq)]
pub struct FullFilesystem {
    /// Where it is mounted.
    pub path: String,
    /// Its usage in percent.
    pub used_percent: f64,
}

/// Returns whether a file system is nearly full.
pub fn is_nearly_full(used_percent: f64) -> bool {
    used_percent >= NEARLY_FULL
}

/// Returns why a container does not run as usual; nothing if it runs.
pub fn of_state(state: ContainerState, engine: Option<&EngineFacts>) -> Vec<String> {
    let mut found = Vec::new();
    match state {
        ContainerState::Running => {}
        ContainerState::Frozen => {
            found.push("It is frozen: none of its processes runs.".to_owned());
        }
        ContainerState::Starting => found.push("It is starting.".to_owned()),
        ContainerState::Stopping => found.push("It is stopping.".to_owned()),
        ContainerState::Stopped => found.push(stopped(engine)),
    }
    let Some(engine) = engine else { return found };
    if engine.oom_killed {
        found.push("The kernel killed a process of it because its memory was used up.".to_owned());
    }
    if let Some(health) = &engine.health
        && health.status == "unhealthy"
    {
        found.push(format!(
            "Its health check fails: {} times in a row.",
            health.failing_streak
        ));
    }
    found
}

fn stopped(engine: Option<&EngineFacts>) -> String {
    let Some(engine) = engine else {
        return "It is not running. LXC keeps no exit code; `log` has the last lines of its log."
            .to_owned();
    };
    let Some(code) = engine.exit_code else {
        return format!("It is not running: its state is {}.", engine.engine_state);
    };
    let time = engine.finished_ms.map(rfc3339);
    let time = time.map_or_else(String::new, |time| format!(" at {time}"));
    let meaning = match code {
        0 => " (success)",
        126 => " (its program could not be executed)",
        127 => " (its program was not found)",
        137 => " (SIGKILL)",
        139 => " (SIGSEGV: it crashed)",
        143 => " (SIGTERM)",
        _ => "",
    };
    let policy = engine.restart_policy.as_deref().unwrap_or("no");
    format!(
        "It is not running: its main process ended{time} with exit code {code}{meaning}. Its restart policy is {policy}."
    )
}

/// Returns what limits a running container.
pub fn of_container(evidence: &ContainerEvidence) -> Vec<String> {
    let usage = &evidence.usage;
    let mut found = Vec::new();
    found.extend(throttled(evidence));
    let cpu = usage.metric(UsageMetric::CpuPercent);
    let is_limited = evidence.cpu_limit_percent.is_some();
    if !is_limited && at_least(cpu, MUCH_OF_ONE_CPU) {
        found.push(format!(
            "It uses much CPU, in percent of one CPU: {}.",
            when(cpu)
        ));
    }
    found.extend(memory(usage));
    let kills = usage.day_count(UsageMetric::OomKills);
    if kills >= 1.0 {
        found.push(format!(
            "The kernel killed {kills:.0} processes of it in the last day because memory was used up."
        ));
    }
    let swap = evidence
        .swap_bytes
        .map(float)
        .filter(|swap| *swap >= MUCH_SWAP);
    if let Some(swap) = swap {
        found.push(format!(
            "{} of it are in swap space, which is slow.",
            bytes(swap)
        ));
    }
    found.extend(waits(usage, "Its processes"));
    if let Some(space) = evidence.root_space {
        found.extend(full(space));
    }
    if let (Some(pids), Some(limit)) = (evidence.pids, evidence.pids_limit)
        && share(float(pids), float(limit)) >= NEARLY_FULL
    {
        found.push(format!(
            "It has {pids} of at most {limit} processes and threads."
        ));
    }
    found
}

fn throttled(evidence: &ContainerEvidence) -> Option<String> {
    let stopped = evidence.usage.metric(UsageMetric::CpuThrottledPercent);
    if !at_least(stopped, THROTTLED) {
        return None;
    }
    let limit = evidence.cpu_limit_percent.map_or_else(
        || " by its CPU limit".to_owned(),
        |limit| format!(": its limit is {:.2} cores", float(limit) / 100.0),
    );
    let mut times = Vec::new();
    if let Some(now) = stopped.now {
        let time = match evidence.measured.as_secs_f64().round() {
            seconds if seconds > 1.0 => format!("{seconds:.0} seconds"),
            _ => "second".to_owned(),
        };
        times.push(format!("{now:.0} % of the last {time}"));
    }
    if let Some(hour) = stopped.hour_mean {
        times.push(format!("{hour:.0} % of the last hour"));
    }
    if let Some(day) = stopped.day_mean {
        times.push(format!("{day:.0} % of the last day"));
    }
    Some(format!("CPU was throttled {}{limit}.", times.join(", ")))
}

fn memory(usage: &UsageTable) -> Option<String> {
    let used = usage.metric(UsageMetric::MemoryBytes);
    let limit = usage.metric(UsageMetric::MemoryLimitBytes).now?;
    let most = used
        .now
        .into_iter()
        .chain(used.hour_max)
        .fold(0.0, f64::max);
    (share(most, limit) >= NEARLY_FULL).then(|| {
        format!(
            "Its memory is nearly used up: {:.0} % now, up to {:.0} % in the last hour, of {}.",
            share(used.now.unwrap_or(most), limit),
            share(most, limit),
            bytes(limit)
        )
    })
}

fn waits<'a>(usage: &'a UsageTable, who: &'a str) -> impl Iterator<Item = String> + use<'a> {
    let rules = [
        (UsageMetric::CpuPressurePercent, WAITS_FOR_CPU, "a CPU"),
        (
            UsageMetric::MemoryPressurePercent,
            WAITS_FOR_MEMORY,
            "memory",
        ),
        (UsageMetric::IoPressurePercent, WAITS_FOR_DISKS, "disks"),
    ];
    rules.into_iter().filter_map(move |(metric, least, what)| {
        let waited = usage.metric(metric);
        let words = || {
            format!(
                "{who} waited for {what}, in percent of the time: {}.",
                when(waited)
            )
        };
        at_least(waited, least).then(words)
    })
}

fn full(space: DiskSpace) -> Option<String> {
    let used = space.total_bytes.saturating_sub(space.free_bytes);
    let writable = used.saturating_add(space.available_bytes);
    let used_percent = share(float(used), float(writable));
    is_nearly_full(used_percent).then(|| {
        format!(
            "The file system of its root directory is {used_percent:.0} % full: {} are available.",
            bytes(float(space.available_bytes))
        )
    })
}

/// Returns the findings about scarce resources of the host.
pub fn of_host(evidence: &HostEvidence) -> Vec<String> {
    let usage = &evidence.usage;
    let mut found = Vec::new();
    let cpu = usage.metric(UsageMetric::CpuPercent);
    if at_least(cpu, BUSY) {
        found.push(format!(
            "The host's {} CPUs are busy, in percent of all: {}.",
            evidence.cpus,
            when(cpu)
        ));
    }
    let used = usage.now.get(UsageMetric::MemoryBytes);
    let total = usage.now.get(UsageMetric::MemoryLimitBytes);
    if let (Some(used), Some(total)) = (used, total)
        && share(used, total) >= NEARLY_FULL
    {
        found.push(format!(
            "The host's memory is nearly used up: {:.0} % of {}.",
            share(used, total),
            bytes(total)
        ));
    }
    found.extend(waits(usage, "Processes of the host"));
    for one in &evidence.full_filesystems {
        found.push(format!(
            "The host's file system {} is {:.0} % full.",
            one.path, one.used_percent
        ));
    }
    found
}

/// Whether a share is high now, or was over the last hour.
fn at_least(metric: MetricOverTime, least: f64) -> bool {
    let values = [metric.now, metric.hour_mean];
    values.into_iter().flatten().any(|value| value >= least)
}

/// Returns the values of a share with their times.
fn when(metric: MetricOverTime) -> String {
    let parts = [
        ("now", metric.now),
        ("mean of the last hour", metric.hour_mean),
        ("of the last day", metric.day_mean),
    ];
    let parts = parts.into_iter().filter_map(|(time, value)| {
        let value = value?;
        Some(format!("{time} {value:.0}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns a part of a whole in percent; 0 if there is no whole.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        part / whole * 100.0
    } else {
        0.0
    }
}

/// Returns a size with three digits and its unit.
fn bytes(value: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = value;
    let mut unit = "B";
    for next in units {
        unit = next;
        if value < 1000.0 {
            break;
        }
        if next != "TB" {
            value /= 1000.0;
        }
    }
    format!("{value:.1} {unit}")
}

#[expect(clippy::cast_precision_loss, reason = "a sentence shows three digits")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_store::history::{UsagePoint, UsageSample};

    fn sample(values: &[(UsageMetric, f64)]) -> UsageSample {
        let mut sample = UsageSample::default();
        for (metric, value) in values {
            sample.set(*metric, Some(*value));
        }
        sample
    }

    fn table(now: UsageSample, hour: UsageSample) -> UsageTable {
        let point = UsagePoint {
            from_s: 0,
            length_s: 3600,
            samples: 60,
            mean: hour,
            max: hour,
        };
        UsageTable {
            now,
            hour: Some(point),
            day: Some(point),
        }
    }

    #[test]
    fn a_throttled_container_is_named_with_its_limit_and_its_share() {
        let throttled = sample(&[(UsageMetric::CpuThrottledPercent, 43.0)]);
        let evidence = ContainerEvidence {
            usage: table(UsageSample::default(), throttled),
            cpu_limit_percent: Some(50),
            ..ContainerEvidence::default()
        };
        let words = "CPU was throttled 43 % of the last hour, 43 % of the last day: its limit is 0.50 cores.";
        assert_eq!(of_container(&evidence), [words]);
        for (ms, part) in [
            (1040, "CPU was throttled 60 % of the last second, 43 %"),
            (4700, "CPU was throttled 60 % of the last 5 seconds, 43 %"),
        ] {
            let now = sample(&[(UsageMetric::CpuThrottledPercent, 60.0)]);
            let evidence = ContainerEvidence {
                usage: table(now, throttled),
                measured: Duration::from_millis(ms),
                ..ContainerEvidence::default()
            };
            let found = of_container(&evidence).concat();
            assert!(found.starts_with(part), "{found}");
        }
    }

    #[test]
    fn memory_kills_disk_and_pressure_are_named_and_a_quiet_one_has_nothing() {
        let now = sample(&[
            (UsageMetric::MemoryBytes, 95e6),
            (UsageMetric::MemoryLimitBytes, 100e6),
            (UsageMetric::IoPressurePercent, 60.0),
            (UsageMetric::CpuPercent, 99.0),
        ]);
        let evidence = ContainerEvidence {
            usage: table(now, sample(&[(UsageMetric::OomKills, 0.05)])),
            root_space: Some(DiskSpace {
                total_bytes: 1_000_000,
                free_bytes: 20_000,
                available_bytes: 10_000,
            }),
            swap_bytes: Some(200 << 20),
            pids: Some(95),
            pids_limit: Some(100),
            ..ContainerEvidence::default()
        };
        let found = of_container(&evidence).join("\n");
        for part in [
            "It uses much CPU, in percent of one CPU: now 99.",
            "nearly used up: 95 % now, up to 95 % in the last hour, of 100.0 MB",
            "killed 3 processes",
            "209.7 MB of it are in swap",
            "waited for disks, in percent of the time: now 60.",
            "is 99 % full: 10.0 kB are available",
            "95 of at most 100",
        ] {
            assert!(found.contains(part), "{part} is not in {found}");
        }
        assert_eq!(of_container(&ContainerEvidence::default()), [""; 0]);
        assert_eq!(of_host(&HostEvidence::default()), [""; 0]);
    }

    #[test]
    fn a_stopped_container_has_the_reason_that_its_engine_knows() {
        let engine = EngineFacts {
            engine_state: "exited".to_owned(),
            exit_code: Some(137),
            oom_killed: true,
            ..EngineFacts::default()
        };
        let found = of_state(ContainerState::Stopped, Some(&engine)).join(" ");
        assert!(found.contains("exit code 137 (SIGKILL)"), "{found}");
        assert!(found.contains("memory was used up"), "{found}");
        let lxc = of_state(ContainerState::Stopped, None).join(" ");
        assert!(lxc.contains("LXC keeps no exit code"), "{lxc}");
        assert_eq!(of_state(ContainerState::Running, None), [""; 0]);
    }
}
