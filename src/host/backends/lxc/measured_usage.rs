//! The usage of containers with the share of the CPU that each takes.

use std::collections::BTreeMap;

use tokio::time::{Instant, sleep};

use super::super::error::BackendError;
use super::containers::LxcView;
use super::cpu_readings::{MeasuredUsage, percent};
use crate::helper_client::ContainerRef;
use gatewren_base::sys::LEAST_BETWEEN;

impl LxcView {
    /// Returns the usage of this container, or of all running ones. Waits for a second reading where there is no earlier
    /// one.
    pub async fn measured_usage(
        &self,
        container: Option<&ContainerRef>,
    ) -> Result<BTreeMap<ContainerRef, MeasuredUsage>, BackendError> {
        let before = self.usage_of(container).await?;
        let begun = Instant::now();
        let known = self.readings.cpu.measure(&before);
        self.readings.cpu.keep(before.iter());
        if let Some(known) = known {
            return Ok(known);
        }
        sleep(LEAST_BETWEEN).await;
        // A container that stopped in the meantime, or cannot be read, does not hide the others.
        let mut after = self.usage_of(container).await.unwrap_or_default();
        let time = begun.elapsed();
        let measured = before.into_iter().map(|(container, earlier)| {
            let usage = after.remove(&container).unwrap_or(earlier);
            let used = earlier.cpu_usage_us.zip(usage.cpu_usage_us);
            let cpu_percent = used.and_then(|(before, after)| percent(before, after, time));
            (container, MeasuredUsage { cpu_percent, usage })
        });
        Ok(measured.collect())
    }
}
