//! What gatewren says of itself: the log, the service manager's notices, the watchdog, the counters.
#![forbid(unsafe_code)]

mod heartbeat;
mod log;
mod metrics;
mod notify;

pub use heartbeat::{Beat, Heartbeat};
pub use log::init;
pub use metrics::Metrics;
pub use notify::Notify;
