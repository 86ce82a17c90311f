//! How the box stood in the last hour: counters that move by themselves, kept in memory and written nowhere.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::backends::{Host, Lxc, Metrics, Usage};
use crate::config::Reach;

/// Between two looks. On an idle box they are what gatewren does most, so they are few.
const EVERY: Duration = Duration::from_mins(1);

/// So many are kept: an hour of them. The oldest goes when a new one comes.
const KEPT: usize = 60;

/// So many containers are measured; of further ones only the state is shown.
const MAX_CONTAINERS: usize = 64;

/// One look at the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostSample {
    /// The share of all processors that was busy, in percent.
    pub cpu: f64,
    /// The share of the memory that is in use, in percent.
    pub memory: f64,
    /// How full the fullest file system is, in percent.
    pub disk: f64,
    /// Bytes a second that came in over all interfaces but loopback.
    pub received: f64,
    /// Bytes a second that went out.
    pub sent: f64,
}

/// One look at a container.
#[derive(Debug, Clone, Copy, Default)]
pub struct ContainerSample {
    /// Of one processor, in percent.
    pub cpu: f64,
    /// Memory in use, in bytes.
    pub memory: f64,
}

/// The last hour, the newest at the end.
#[derive(Debug, Clone, Default)]
pub struct Hour {
    /// Of the host.
    pub host: VecDeque<HostSample>,
    /// Of each container that ran.
    pub containers: BTreeMap<String, VecDeque<ContainerSample>>,
}

/// What counters said at the last look.
#[derive(Default)]
struct Before {
    at: Option<Instant>,
    traffic: (u64, u64),
    cpu_us: BTreeMap<String, u64>,
}

/// The ring, and who is told of each new sample.
pub struct Samples {
    hour: Mutex<Hour>,
    bell: watch::Sender<u64>,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            hour: Mutex::default(),
            bell: watch::Sender::new(0),
        }
    }
}

impl Samples {
    /// A copy of the last hour.
    pub fn hour(&self) -> Hour {
        self.lock().clone()
    }

    /// Rings with each sample.
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.bell.subscribe()
    }

    /// Looks again and again, for as long as it is polled. What cannot be seen leaves a gap.
    pub async fn keep(&self, host: Arc<Host>, lxc: Lxc) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = Before::default();
        loop {
            ticks.tick().await;
            let metrics = host.metrics().await;
            let view = lxc.seen_by(&Reach::everything(), "the owner's page");
            let containers = view.usages(MAX_CONTAINERS).await;
            let now = Instant::now();
            let passed = before.at.map_or(0.0, |at| (now - at).as_secs_f64());
            if let Ok(metrics) = metrics {
                self.add_host(&metrics, &mut before, passed);
            }
            if let Ok(usages) = containers {
                self.add_containers(usages, &mut before, passed);
            }
            before.at = Some(now);
            self.bell.send_modify(|count| *count += 1);
        }
    }

    fn add_host(&self, metrics: &Metrics, before: &mut Before, passed: f64) {
        let outside = metrics.network.iter().filter(|one| one.interface != "lo");
        let traffic = outside.fold((0, 0), |(rx, tx), one| {
            (rx + one.rx_bytes, tx + one.tx_bytes)
        });
        let rate = |now: u64, then: u64| match now.checked_sub(then) {
            Some(bytes) if passed > 0.0 => float(bytes) / passed,
            // The first look, or an interface that went away with its counters.
            _ => 0.0,
        };
        let total = float(metrics.memory.total_bytes).max(1.0);
        let sample = HostSample {
            cpu: metrics.cpu_percent,
            memory: 100.0 - 100.0 * float(metrics.memory.available_bytes) / total,
            disk: metrics
                .mounts
                .iter()
                .map(|mount| mount.used_percent)
                .fold(0.0, f64::max),
            received: rate(traffic.0, before.traffic.0),
            sent: rate(traffic.1, before.traffic.1),
        };
        before.traffic = traffic;
        push(&mut self.lock().host, sample);
    }

    fn add_containers(&self, usages: Vec<(String, Usage)>, before: &mut Before, passed: f64) {
        let mut hour = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, Hour> {
        self.hour.lock().unwrap_or_else(PoisonError::into_inner)
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
    reason = "a chart of 56 pixels shows no more"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(cpu_us: u64) -> Vec<(String, Usage)> {
        let usage = Usage {
            cpu_usage_us: Some(cpu_us),
            memory_bytes: Some(7),
            ..Usage::default()
        };
        vec![("web".to_owned(), usage)]
    }

    #[test]
    fn a_container_is_measured_from_look_to_look_for_an_hour() {
        let samples = Samples::default();
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
