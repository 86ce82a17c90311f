//! Earlier readings of the counters of containers, of all callers, so that rates are known without a pause.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::cpu_readings::CpuReadings;
use crate::helper_client::{ContainerRef, MeasuredContainer};
use gatewren_base::sys::{EarlierSamples, lock};

/// The least time between two readings of all counters. LXC's limits stop a container in periods of 100 ms, so a share
/// of a shorter time would be rough.
pub(super) const LEAST_BETWEEN_COUNTERS: Duration = Duration::from_secs(1);

/// The earlier readings.
#[derive(Debug, Default)]
pub(super) struct UsageReadings {
    /// The CPU time, from 0.2 seconds ago on.
    pub(super) cpu: CpuReadings,
    /// All counters, from a second ago on.
    pub(super) counters: CounterReadings,
}

impl UsageReadings {
    /// Keeps a reading of these containers.
    pub(super) fn keep(&self, all: &[MeasuredContainer]) {
        self.cpu.keep_counters(all);
        self.counters.keep(all);
    }
}

/// All counters of containers at earlier readings. Those that are not read any more are dropped, as in [`CpuReadings`].
#[derive(Debug, Default)]
pub(super) struct CounterReadings(Mutex<BTreeMap<ContainerRef, EarlierSamples<MeasuredContainer>>>);

impl CounterReadings {
    /// Keeps these readings.
    pub(super) fn keep(&self, all: &[MeasuredContainer]) {
        let mut readings = lock(&self.0);
        readings.retain(|_, samples| !samples.is_outdated());
        for measured in all {
            let samples = readings.entry(measured.container.clone());
            let samples =
                samples.or_insert_with(|| EarlierSamples::at_least(LEAST_BETWEEN_COUNTERS));
            samples.keep(measured.clone());
        }
    }

    /// Returns the newest reading before this one, 1 to 10 seconds ago, and its age. `None` without one, or if the
    /// container was started again since.
    pub(super) fn before(&self, now: &MeasuredContainer) -> Option<(MeasuredContainer, Duration)> {
        let (earlier, age) = lock(&self.0).get(&now.container)?.earlier()?;
        (earlier.init_pid == now.init_pid).then_some((earlier, age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::helper_client::{ContainerDelays, ContainerUsage};

    fn reading(name: &str, init_pid: u32) -> MeasuredContainer {
        MeasuredContainer {
            container: name.parse().unwrap(),
            init_pid,
            usage: ContainerUsage::default(),
            delays: ContainerDelays::default(),
        }
    }

    #[test]
    fn an_earlier_reading_is_of_the_same_start_and_a_second_old() {
        let readings = UsageReadings::default();
        let before = |name, pid| readings.counters.before(&reading(name, pid));
        readings.keep(&[reading("a", 7)]);
        assert!(before("a", 7).is_none(), "it is of now");
        std::thread::sleep(LEAST_BETWEEN_COUNTERS);
        let (earlier, age) = before("a", 7).unwrap();
        assert_eq!(earlier, reading("a", 7));
        assert!(age >= LEAST_BETWEEN_COUNTERS);
        assert!(before("a", 8).is_none(), "it was started again");
        assert!(before("b", 7).is_none(), "it was never read");
    }
}
