//! The resource usage of the host and its containers over time, in one bounded SQLite file.
//!
//! A sample for each minute is kept for 24 hours, and the mean and maximum of each 15 minutes for 30 days. A row has the
//! samples of one time for all series, so that a minute writes few pages. A series is the host or a container.
#![forbid(unsafe_code)]

mod codec;
mod error;
mod file;
mod points;
mod retention;
mod sample;
mod series;
mod store;
mod summary;

pub use error::UsageHistoryError;
pub use points::{MAX_POINTS, UsagePoint, UsageRange};
pub use retention::{KEPT_MINUTES_S, KEPT_QUARTERS_S, MAX_CONTAINERS};
pub use sample::{UsageMetric, UsageSample};
pub use store::{SampledContainer, UsageHistory, UsageTick};

#[cfg(test)]
mod full_disk;
