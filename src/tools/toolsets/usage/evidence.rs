//! Reads everything that may show why a container is slow, each part for itself: what cannot be read is named.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::answer::UsageSubject;
use super::findings::{ContainerEvidence, FullFilesystem, HostEvidence, is_nearly_full};
use super::log_excerpt::{LogExcerpt, LogReaders};
use super::table::UsageTable;
use gatewren_host::backends::{
    BackendError, ContainerRef, ContainerState, ContainerStatus, Host, HostMetrics, Journal, Lxc,
    LxcView, MeasuredVitals, Process, Processes,
};
use gatewren_host::sampler::container_sample;
use gatewren_store::history::{UsageHistory, UsageMetric, UsageSample};
use gatewren_wire::registry::Cx;

/// How long one part may take; it is then left out.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most processes.
const PROCESSES: usize = 5;

/// What a diagnosis reads.
pub struct DiagnosisSources {
    /// The containers.
    pub lxc: Arc<Lxc>,
    /// The host.
    pub host: Arc<Host>,
    /// The processes.
    pub processes: Arc<Processes>,
    /// The journals.
    pub journal: Arc<Journal>,
    /// The usage over time.
    pub history: UsageHistory,
}

/// Everything that was read.
pub struct Evidence {
    /// The container's state.
    pub status: ContainerStatus,
    /// Its usage; without the values of now if it does not run or could not be measured.
    pub container: ContainerEvidence,
    /// Its processes that use most.
    pub processes: Vec<Process>,
    /// The last errors in its log.
    pub log: Option<LogExcerpt>,
    /// The host's usage; `None` if the caller may not see it, or it could not be measured.
    pub host: Option<HostEvidence>,
    /// What could not be read, and why.
    pub not_read: Vec<String>,
}

/// The parts that were not read.
#[derive(Default)]
struct MissingParts(Vec<String>);

impl MissingParts {
    fn take<T>(&mut self, what: &str, read: Result<T, impl Display>) -> Option<T> {
        read.map_err(|cause| self.0.push(format!("{what}: {cause}")))
            .ok()
    }
}

impl DiagnosisSources {
    /// Reads all parts at the same time.
    ///
    /// # Errors
    /// Fails if there is no such container within the caller's reach, or its state cannot be read.
    pub async fn read(&self, name: &ContainerRef, cx: &Cx) -> Result<Evidence, BackendError> {
        let (reach, reference) = (&cx.caller().reach, cx.reference());
        let lxc = self.lxc.view_for(reach, reference);
        let status = lxc.status(name).await?;
        let runs = matches!(
            status.state,
            ContainerState::Running | ContainerState::Frozen
        );
        let processes = self.processes.view_for(reach, reference);
        let logs = LogReaders {
            lxc: lxc.clone(),
            journal: self.journal.view_for(reach, reference),
        };
        let subject = UsageSubject::Container(name.to_string());
        let (measured, past, top, log, host) = tokio::join!(
            in_time(async { measure(&lxc, name, runs).await }),
            UsageTable::read(&self.history, subject),
            in_time(async {
                if runs {
                    processes.top_in(name, PROCESSES).await
                } else {
                    Ok(Vec::new())
                }
            }),
            in_time(logs.excerpt(name, runs)),
            self.read_host(reach.host()),
        );
        let mut missing = MissingParts::default();
        let measured = missing.take("usage now", measured).flatten();
        let past = missing.take("usage over time", past).unwrap_or_default();
        if past.hour_samples() == 0 {
            let words = "there are no samples of it yet; one is taken each minute while it runs";
            missing.0.push(format!("usage of the last hour: {words}"));
        }
        let processes = missing.take("processes", top).unwrap_or_default();
        let log = missing.take("log", log);
        let host = missing.take("host", host);
        Ok(Evidence {
            container: match measured {
                Some(measured) => measured.into_evidence(&past),
                None => ContainerEvidence {
                    usage: past,
                    ..ContainerEvidence::default()
                },
            },
            status,
            processes,
            log,
            host,
            not_read: missing.0,
        })
    }

    async fn read_host(&self, is_visible: bool) -> Result<HostEvidence, String> {
        if !is_visible {
            return Err("it is not within this agent's reach".to_owned());
        }
        let (metrics, past, counters) = tokio::join!(
            in_time(self.host.metrics()),
            UsageTable::read(&self.history, UsageSubject::Host),
            self.host.counters(),
        );
        let metrics = metrics?;
        let mounts = metrics
            .mounts
            .iter()
            .filter(|mount| is_nearly_full(mount.used_percent));
        Ok(HostEvidence {
            cpus: counters.map_or(0, |counters| counters.cpus),
            full_filesystems: mounts
                .map(|mount| FullFilesystem {
                    path: mount.path.clone(),
                    used_percent: mount.used_percent,
                })
                .collect(),
            usage: UsageTable {
                now: host_now(&metrics),
                ..past.unwrap_or_default()
            },
        })
    }
}

/// Waits for a part, but not forever.
async fn in_time<T>(part: impl Future<Output = Result<T, BackendError>>) -> Result<T, String> {
    match timeout(PATIENCE, part).await {
        Ok(read) => read.map_err(|cause| cause.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

/// Two readings of a container, and the sample between them.
struct MeasuredUsage {
    vitals: MeasuredVitals,
    sample: UsageSample,
}

async fn measure(
    lxc: &LxcView,
    name: &ContainerRef,
    runs: bool,
) -> Result<Option<MeasuredUsage>, BackendError> {
    if !runs {
        return Ok(None);
    }
    let vitals = lxc.measured_vitals(name).await?;
    let (before, after) = ((&vitals.before).into(), (&vitals.after).into());
    let mut sample = container_sample(&before, &after, vitals.elapsed);
    // The kernel sums up waiting every two seconds, which is too rough for a second; its mean of 10 seconds is not.
    let waits = &vitals.after.delays;
    for (metric, hundredths) in [
        (UsageMetric::CpuPressurePercent, waits.cpu_waits_now),
        (UsageMetric::MemoryPressurePercent, waits.memory_waits_now),
        (UsageMetric::IoPressurePercent, waits.io_waits_now),
    ] {
        sample.set(
            metric,
            hundredths.map(|hundredths| float(hundredths) / 100.0),
        );
    }
    Ok(Some(MeasuredUsage { vitals, sample }))
}

impl MeasuredUsage {
    fn into_evidence(self, past: &UsageTable) -> ContainerEvidence {
        let usage = self.vitals.after.usage;
        ContainerEvidence {
            measured: self.vitals.elapsed,
            usage: UsageTable {
                now: self.sample,
                hour: past.hour,
                day: past.day,
            },
            cpu_limit_percent: usage.cpu_limit_percent,
            swap_bytes: usage.swap_bytes,
            pids: usage.pids,
            pids_limit: usage.pids_limit,
            root_space: self.vitals.after.root_space,
        }
    }
}

fn host_now(metrics: &HostMetrics) -> UsageSample {
    let memory = &metrics.memory;
    let used = memory.total_bytes.saturating_sub(memory.available_bytes);
    let pressure = metrics.pressure;
    let [load, ..] = metrics.load;
    let mut sample = UsageSample::default();
    for (metric, value) in [
        (UsageMetric::CpuPercent, Some(metrics.cpu_percent)),
        (UsageMetric::MemoryBytes, Some(float(used))),
        (
            UsageMetric::MemoryLimitBytes,
            Some(float(memory.total_bytes)),
        ),
        (
            UsageMetric::CpuPressurePercent,
            pressure.map(|some| some.cpu_percent),
        ),
        (
            UsageMetric::MemoryPressurePercent,
            pressure.map(|some| some.memory_percent),
        ),
        (
            UsageMetric::IoPressurePercent,
            pressure.map(|some| some.io_percent),
        ),
        (UsageMetric::Load, Some(load)),
    ] {
        sample.set(metric, value);
    }
    sample
}

#[expect(clippy::cast_precision_loss, reason = "the answer shows four digits")]
fn float(number: u64) -> f64 {
    number as f64
}
