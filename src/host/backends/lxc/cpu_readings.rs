//! The CPU time of containers at earlier readings, and the share that each has taken since.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::helper_client::{ContainerRef, ContainerUsage, MeasuredContainer};
use gatewren_base::sys::{EarlierSamples, lock};

/// Usage by container.
pub(super) type UsageMap = BTreeMap<ContainerRef, ContainerUsage>;

/// A container's usage, and the share of one CPU in percent that it took.
#[derive(Debug, Clone)]
pub struct MeasuredUsage {
    /// Since the newest earlier reading, 0.2 to 10 seconds ago; `None` if the kernel does not count it.
    pub cpu_percent: Option<f64>,
    /// The usage now.
    pub usage: ContainerUsage,
}

/// The CPU time of containers at earlier readings, of all callers.
///
/// Those that are not read any more are dropped: there are never more than containers that were read in the last ten seconds.
#[derive(Debug, Default)]
pub(super) struct CpuReadings(Mutex<BTreeMap<ContainerRef, EarlierSamples<u64>>>);

impl CpuReadings {
    /// Keeps the readings of counters.
    pub(super) fn keep_counters(&self, all: &[MeasuredContainer]) {
        self.keep(all.iter().map(|one| (&one.container, &one.usage)));
    }

    /// Keeps these readings.
    pub(super) fn keep<'u>(
        &self,
        read: impl Iterator<Item = (&'u ContainerRef, &'u ContainerUsage)>,
    ) {
        let mut readings = lock(&self.0);
        readings.retain(|_, samples| !samples.is_outdated());
        for (container, usage) in read {
            if let Some(used_us) = usage.cpu_usage_us {
                readings.entry(container.clone()).or_default().keep(used_us);
            }
        }
    }

    /// Returns the share of one CPU that a container took since an earlier reading. `None` without one, or if it was
    /// started again since.
    fn percent(&self, container: &ContainerRef, used_us: u64) -> Option<f64> {
        let (earlier, age) = lock(&self.0).get(container)?.earlier()?;
        percent(earlier, used_us, age)
    }

    /// Returns these usages with their shares; `None` if one of them has no earlier reading.
    pub(super) fn measure(&self, read: &UsageMap) -> Option<BTreeMap<ContainerRef, MeasuredUsage>> {
        let measured = read.iter().map(|(container, usage)| {
            let cpu_percent = match usage.cpu_usage_us {
                Some(used_us) => Some(self.percent(container, used_us)?),
                None => None,
            };
            let usage = *usage;
            Some((container.clone(), MeasuredUsage { cpu_percent, usage }))
        });
        measured.collect()
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a percentage needs no more precision"
)]
pub(super) fn percent(before_us: u64, after_us: u64, time: Duration) -> Option<f64> {
    let used_us = after_us.checked_sub(before_us)?;
    let share = used_us as f64 / time.as_micros().max(1) as f64;
    Some((share * 1000.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::LEAST_BETWEEN;

    use super::*;

    fn usage(cpu_usage_us: Option<u64>) -> ContainerUsage {
        ContainerUsage {
            cpu_usage_us,
            ..ContainerUsage::default()
        }
    }

    fn reference(name: &str) -> ContainerRef {
        name.parse().unwrap()
    }

    #[test]
    fn a_share_is_known_once_each_container_has_an_earlier_reading() {
        let readings = CpuReadings::default();
        let read = |cpu| {
            UsageMap::from([
                (reference("a"), usage(Some(cpu))),
                (reference("b"), usage(None)),
            ])
        };
        assert!(readings.measure(&read(0)).is_none());
        readings.keep(read(1_000).iter());
        std::thread::sleep(LEAST_BETWEEN);
        let measured = readings.measure(&read(101_000)).unwrap();
        let percent = measured[&reference("a")].cpu_percent.unwrap();
        assert!((1.0..=50.0).contains(&percent), "{percent}");
        assert_eq!(measured[&reference("b")].cpu_percent, None);
        // One that is new, or has been started again, is to be measured by two readings.
        assert!(readings.measure(&read(900)).is_none());
        let new = UsageMap::from([(reference("c"), usage(Some(1)))]);
        assert!(readings.measure(&new).is_none());
    }

    #[test]
    fn percent_of_one_cpu() {
        let second = Duration::from_secs(1);
        assert_eq!(percent(0, 1_500_000, second), Some(150.0));
        assert_eq!(percent(5, 4, second), None);
    }
}
