//! Takes the samples, and hands each reading to those who want it too.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::rates::{ContainerReading, HostReading, container_sample, host_sample};
use crate::backends::{BackendError, Host, HostCounters, Lxc, MeasuredContainer};
use gatewren_base::config::Reach;
use gatewren_base::sys::{FailureLog, now_ms};
use gatewren_store::history::{SampledContainer, UsageHistory, UsageTick};

/// The interval between two samples. It is long because sampling is most of gatewren's work on an idle host.
const EVERY: Duration = Duration::from_mins(1);

/// A reading that comes later than this many intervals after the one before is no sample: it would count the use of a
/// long time as that of a minute.
const MAX_INTERVALS: u32 = 3;

/// The reference of its requests in the helper's log.
const REFERENCE: &str = "the usage history";

/// The counters of all running containers at one time; `None` before the first reading and after one that failed.
pub type Readings = watch::Receiver<Option<Arc<Vec<MeasuredContainer>>>>;

/// Takes the samples.
#[derive(Debug)]
pub struct UsageSampler {
    host: Arc<Host>,
    lxc: Lxc,
    history: UsageHistory,
    every: Duration,
    before: Option<TimedReading>,
    readings: watch::Sender<Option<Arc<Vec<MeasuredContainer>>>>,
    failures: FailureLog,
}

/// All counters at one time.
#[derive(Debug)]
struct TimedReading {
    at: Instant,
    host: Option<HostCounters>,
    disk_percent: Option<f64>,
    containers: BTreeMap<String, ContainerReading>,
}

impl UsageSampler {
    /// Creates a sampler that has read nothing yet.
    pub fn new(host: Arc<Host>, lxc: Lxc, history: UsageHistory) -> Self {
        Self {
            host,
            lxc,
            history,
            every: EVERY,
            before: None,
            readings: watch::Sender::new(None),
            failures: FailureLog::default(),
        }
    }

    /// Sets another interval, for tests.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Returns the history that it writes.
    pub fn history(&self) -> UsageHistory {
        self.history.clone()
    }

    /// Returns a receiver of the readings of containers.
    pub fn readings(&self) -> Readings {
        self.readings.subscribe()
    }

    /// Samples while it is polled.
    pub async fn run(mut self) {
        let mut ticks = interval(self.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sample().await;
        }
    }

    async fn sample(&mut self) {
        let host = self.host.counters().await;
        let host = self.note("the host's counters could not be read", host);
        // After the counters: `metrics` uses their sample of the CPU and need not wait for its own.
        let metrics = self.host.metrics().await.ok();
        let view = self.lxc.view_for(&Reach::everything(), REFERENCE);
        let counters = view.counters().await;
        let counters = self.note("the containers' counters could not be read", counters);
        let counters = counters.map(Arc::new);
        let containers = counters.as_deref().into_iter().flatten();
        let now = TimedReading {
            at: Instant::now(),
            host,
            disk_percent: metrics.and_then(|metrics| metrics.fullest_disk()),
            containers: containers
                .map(|measured| (measured.container.to_string(), measured.into()))
                .collect(),
        };
        self.readings.send_replace(counters);
        let tick = self
            .before
            .as_ref()
            .and_then(|before| self.tick(before, &now));
        self.before = Some(now);
        if let Some(tick) = tick {
            self.keep(tick).await;
        }
    }

    /// Returns the samples between two readings; `None` if too much time is between them.
    fn tick(&self, before: &TimedReading, now: &TimedReading) -> Option<UsageTick> {
        let elapsed = now.at.duration_since(before.at);
        if elapsed > self.every * MAX_INTERVALS {
            return None;
        }
        let host = before.host.zip(now.host).map(|(before, after)| {
            host_sample(&HostReading {
                before,
                after,
                elapsed,
                disk_percent: now.disk_percent,
            })
        });
        let containers = now.containers.iter().filter_map(|(name, after)| {
            let sample = container_sample(before.containers.get(name)?, after, elapsed);
            let name = name.clone();
            (!sample.is_empty()).then_some(SampledContainer { name, sample })
        });
        // Samples are numbered by the minute, so that a restart within one makes no second sample of it.
        let (now_s, step_s) = (now_ms() / 1000, self.every.as_secs().max(1));
        Some(UsageTick {
            at_s: now_s - now_s % step_s,
            host,
            containers: containers.collect(),
        })
    }

    /// Writes samples; a full disk or another failure loses them, and is logged once.
    async fn keep(&mut self, tick: UsageTick) {
        let history = self.history.clone();
        let written = spawn_blocking(move || history.add(&tick)).await;
        let failure = match written {
            Ok(Ok(())) => None,
            Ok(Err(cause)) => Some(cause.to_string()),
            Err(_) => Some("the task that writes the usage history was aborted".to_owned()),
        };
        if !self.failures.is_news("write", failure.as_deref()) {
            return;
        }
        if let Some(cause) = failure {
            warn!(%cause, "usage samples are lost until this is repaired");
        } else {
            info!("usage samples are written again");
        }
    }

    /// Logs a failure once, until it changes.
    fn note<T>(&mut self, what: &'static str, read: Result<T, BackendError>) -> Option<T> {
        let failure = read.as_ref().err().map(ToString::to_string);
        if self.failures.is_news(what, failure.as_deref())
            && let Some(cause) = failure
        {
            info!(%cause, "{what}; the usage history has a gap");
        }
        read.ok()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

    use super::*;
    use crate::backends::ContainerLab;
    use crate::helper_client::HelperClient;
    use gatewren_base::sys::Scratch;
    use gatewren_store::history::{UsageMetric, UsagePoint, UsageRange};

    const SECOND: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_mins(1);

    fn last_hour() -> UsageRange {
        let now_s = now_ms() / 1000 + 1;
        UsageRange {
            since_s: now_s - 3600,
            until_s: now_s,
            now_s,
            points: 120,
        }
    }

    #[tokio::test]
    async fn a_host_without_a_helper_has_its_own_samples() {
        let scratch = Scratch::new();
        let history = UsageHistory::at(scratch.join("usage.db"));
        let lxc = Lxc::new(HelperClient::connect_to(scratch.join("none.sock")));
        let host = Arc::new(Host::unaided());
        let sampler = UsageSampler::new(host, lxc, history.clone()).every(SECOND);
        let readings = sampler.readings();
        let running = tokio::spawn(sampler.run());
        let found = timeout(LONG, async {
            loop {
                sleep(SECOND / 4).await;
                let points = history.host(last_hour()).unwrap();
                if points.iter().any(|point| point.samples >= 2) {
                    return points;
                }
            }
        });
        let points: Vec<UsagePoint> = found.await.unwrap();
        running.abort();
        let mean = points[0].mean;
        assert!(mean.get(UsageMetric::CpuPercent).is_some());
        assert!(mean.get(UsageMetric::MemoryBytes) > Some(0.0));
        let disk = mean.get(UsageMetric::DiskPercent).unwrap();
        assert!((0.0..=100.0).contains(&disk), "{disk}");
        assert!(readings.borrow().is_none());
    }

    #[tokio::test]
    async fn a_container_that_its_limit_throttles_is_sampled() {
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let busy = lab.create("sampled", "lxc.cgroup.cpu.cfs_quota_us = 20000\n");
        busy.lxc("lxc-start", &["-d"]);
        let (_child, helper) = lab.helper();
        let lxc = Lxc::new(helper);
        let name = busy.name.parse().unwrap();
        let view = lxc.view_for(&Reach::everything(), "test");
        view.status(&name).await.unwrap();
        let spin = ["--", "sh", "-c", "while :; do :; done >/dev/null 2>&1 &"];
        busy.lxc("lxc-attach", &spin);
        let history = UsageHistory::at(lab.scratch.join("usage.db"));
        let host = Arc::new(Host::unaided());
        let sampler = UsageSampler::new(host, lxc, history.clone()).every(SECOND);
        let running = tokio::spawn(sampler.run());
        let found = timeout(LONG, async {
            loop {
                sleep(SECOND / 4).await;
                let points = history.container("sampled", last_hour()).unwrap();
                let throttled =
                    |point: &UsagePoint| point.max.get(UsageMetric::CpuThrottledPercent);
                if points.iter().any(|point| throttled(point) > Some(50.0)) {
                    return points;
                }
            }
        });
        let points = found.await.unwrap();
        running.abort();
        let cpu = points[0].max.get(UsageMetric::CpuPercent).unwrap();
        assert!((5.0..60.0).contains(&cpu), "{cpu}");
    }
}
