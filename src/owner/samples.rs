//! Samples of the last hour: counters that change by themselves, kept in memory and never stored.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::time::Instant;

use gatewren_base::sys::lock;
use gatewren_host::backends::{ContainerUsage, Host, HostMetrics};
use gatewren_host::sampler::Readings;

/// The number of samples that are kept, an hour of them; a new one replaces the oldest.
const KEPT: usize = 60;

/// The number of containers that are measured; further ones only show their state.
const MAX_CONTAINERS: usize = 64;

/// One sample of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostSample {
    /// CPU usage over all processors, in percent.
    pub cpu: f64,
    /// Memory usage, in percent.
    pub memory: f64,
    /// Usage of the fullest file system, in percent.
    pub disk: f64,
    /// Bytes received per second on all interfaces but loopback.
    pub received: f64,
    /// Bytes sent per second on all interfaces but loopback.
    pub sent: f64,
}

/// One sample of a container.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContainerSample {
    /// CPU usage in percent of one processor.
    pub cpu: f64,
    /// Memory usage in bytes.
    pub memory: f64,
}

/// The samples of the last hour, the newest at the end.
#[derive(Debug, Clone, Default)]
pub struct SampleHistory {
    /// The samples of the host.
    pub host: VecDeque<HostSample>,
    /// The samples of each container that was running.
    pub containers: BTreeMap<String, VecDeque<ContainerSample>>,
}

/// The counters at the last sample.
#[derive(Default)]
struct Before {
    at: Option<Instant>,
    traffic: (u64, u64),
    cpu_us: BTreeMap<String, u64>,
}

/// The ring buffer of samples, and the channel that announces each new one.
pub struct Samples {
    hour: Mutex<SampleHistory>,
    taken: watch::Sender<u64>,
}

impl Samples {
    /// Begins with the samples of an hour; none except in a demo.
    pub fn begin(hour: SampleHistory) -> Self {
        Self {
            hour: Mutex::new(hour),
            taken: watch::Sender::new(0),
        }
    }

    /// Returns a copy of the last hour.
    pub fn hour(&self) -> SampleHistory {
        lock(&self.hour).clone()
    }

    /// The usage of the fullest file system in the newest sample, in percent.
    pub fn fullest_disk(&self) -> Option<f64> {
        self.newest().map(|sample| sample.disk)
    }

    /// The newest sample of the host.
    pub fn newest(&self) -> Option<HostSample> {
        lock(&self.hour).host.back().copied()
    }

    /// Returns a receiver that is notified of each sample.
    pub fn watch_samples(&self) -> watch::Receiver<u64> {
        self.taken.subscribe()
    }

    /// Samples with each reading of the containers, while it is polled. Values that cannot be read leave a gap.
    pub async fn keep(&self, host: Arc<Host>, mut readings: Readings) {
        let mut before = Before::default();
        while readings.changed().await.is_ok() {
            let metrics = host.metrics().await;
            let containers = readings.borrow_and_update().clone();
            let now = Instant::now();
            let passed = before.at.map_or(0.0, |at| (now - at).as_secs_f64());
            if let Ok(metrics) = metrics {
                self.add_host(&metrics, &mut before, passed);
            }
            if let Some(containers) = containers {
                let measured = containers.iter().take(MAX_CONTAINERS);
                let usages = measured.map(|one| (one.container.to_string(), one.usage));
                self.add_containers(usages.collect(), &mut before, passed);
            }
            before.at = Some(now);
            self.taken.send_modify(|count| *count += 1);
        }
    }

    fn add_host(&self, metrics: &HostMetrics, before: &mut Before, passed: f64) {
        let outside = metrics.network.iter().filter(|one| one.interface != "lo");
        let traffic = outside.fold((0, 0), |(rx, tx), one| {
            (rx + one.rx_bytes, tx + one.tx_bytes)
        });
        let rate = |now: u64, then: u64| match now.checked_sub(then) {
            Some(bytes) if passed > 0.0 => float(bytes) / passed,
            // The first sample, or an interface was removed with its counters.
            _ => 0.0,
        };
        let total = float(metrics.memory.total_bytes).max(1.0);
        let sample = HostSample {
            cpu: metrics.cpu_percent,
            memory: 100.0 - 100.0 * float(metrics.memory.available_bytes) / total,
            disk: metrics.fullest_disk().unwrap_or_default(),
            received: rate(traffic.0, before.traffic.0),
            sent: rate(traffic.1, before.traffic.1),
        };
        before.traffic = traffic;
        push(&mut lock(&self.hour).host, sample);
    }

    fn add_containers(
        &self,
        usages: Vec<(String, ContainerUsage)>,
        before: &mut Before,
        passed: f64,
    ) {
        let mut hour = lock(&self.hour);
        hour.containers
            .retain(|name, _| usages.iter().any(|(known, _)| known == name));
        let mut cpu_us = BTreeMap::new();
        for (name, usage) in usages {
            let used = usage.cpu_usage_us.unwrap_or(0);
            let then = before.cpu_us.get(&name).copied();
            let spent = then.and_then(|then| used.checked_sub(then)).unwrap_or(0);
            let cpu = if passed > 0.0 {
                float(spent) / (passed * 10_000.0)
            } else {
                0.0
            };
            let memory = float(usage.memory_bytes.unwrap_or(0));
            cpu_us.insert(name.clone(), used);
            push(
                hour.containers.entry(name).or_default(),
                ContainerSample { cpu, memory },
            );
        }
        before.cpu_us = cpu_us;
    }
}

fn push<T>(ring: &mut VecDeque<T>, sample: T) {
    if ring.len() >= KEPT {
        ring.pop_front();
    }
    ring.push_back(sample);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a chart with a height of 56 pixels shows no more"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu_us: u64) -> Vec<(String, ContainerUsage)> {
        let usage = ContainerUsage {
            cpu_usage_us: Some(cpu_us),
            memory_bytes: Some(7),
            ..ContainerUsage::default()
        };
        vec![("web".to_owned(), usage)]
    }

    #[test]
    fn a_container_is_measured_from_look_to_look_for_an_hour() {
        let samples = Samples::begin(SampleHistory::default());
        let mut before = Before::default();
        samples.add_containers(usage(5_000_000), &mut before, 0.0);
        samples.add_containers(usage(35_000_000), &mut before, 60.0);
        let web = samples.hour().containers["web"].clone();
        assert_eq!(
            web.iter().map(|one| one.cpu).collect::<Vec<_>>(),
            [0.0, 50.0]
        );
        for _ in 0..200 {
            samples.add_containers(usage(0), &mut before, 60.0);
        }
        assert_eq!(samples.hour().containers["web"].len(), KEPT);
        samples.add_containers(Vec::new(), &mut before, 60.0);
        assert!(samples.hour().containers.is_empty(), "it runs no more");
    }
}
