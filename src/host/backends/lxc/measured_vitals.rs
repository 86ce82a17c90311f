//! A container's facts, with an earlier reading of its counters for rates.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::super::error::BackendError;
use super::containers::LxcView;
use super::readings::LEAST_BETWEEN_COUNTERS;
use crate::helper_client::{ContainerRef, MeasuredContainer, Vitals};

/// A container's facts, and its counters at an earlier time.
#[derive(Debug, Clone)]
pub struct MeasuredVitals {
    /// The counters before.
    pub before: MeasuredContainer,
    /// The facts now.
    pub after: Vitals,
    /// The time in between, 1 to 10 seconds.
    pub elapsed: Duration,
}

impl LxcView {
    /// Returns the facts about a running container with its counters at an earlier reading. Without one it waits a
    /// second for another reading.
    pub async fn measured_vitals(
        &self,
        name: &ContainerRef,
    ) -> Result<MeasuredVitals, BackendError> {
        let now = self.vitals(name).await?;
        let read = counters(&now);
        let earlier = self.readings.counters.before(&read);
        self.readings.keep(std::slice::from_ref(&read));
        if let Some((before, elapsed)) = earlier {
            return Ok(MeasuredVitals {
                before,
                after: now,
                elapsed,
            });
        }
        let begun = Instant::now();
        sleep(LEAST_BETWEEN_COUNTERS).await;
        let after = self.vitals(name).await?;
        let elapsed = begun.elapsed();
        self.readings.keep(&[counters(&after)]);
        Ok(MeasuredVitals {
            before: read,
            after,
            elapsed,
        })
    }
}

fn counters(vitals: &Vitals) -> MeasuredContainer {
    MeasuredContainer {
        container: vitals.container.clone(),
        init_pid: vitals.init_pid,
        usage: vitals.usage,
        delays: vitals.delays,
    }
}
