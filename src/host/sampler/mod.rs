//! Samples the usage of the host and its containers each minute, and keeps it in the history.
//!
//! One request to the helper returns the counters of all containers; those of the host are read from `/proc`. A sample
//! is the difference of two readings, so the first one after a start, and the first of a container, is no sample.
#![forbid(unsafe_code)]

mod rates;
mod sampling;

pub use rates::{ContainerReading, HostReading, container_sample, host_sample};
pub use sampling::{Readings, UsageSampler};
