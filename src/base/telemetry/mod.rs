//! The log, notifications to systemd, the watchdog, and the counters.
#![forbid(unsafe_code)]

mod calls;
mod exposition;
mod heartbeat;
mod log;
mod metrics;
mod notify;
mod panics;
mod redact;
mod redact_text;
mod secret_names;
mod secret_shapes;

pub use exposition::Exposition;
pub use heartbeat::{Heartbeat, HeartbeatPart};
pub use log::{init, set_level};
pub use metrics::Metrics;
pub use notify::SdNotify;
pub use redact::redact;
pub use redact_text::redact_text;
