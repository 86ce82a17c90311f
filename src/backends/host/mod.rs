//! The machine itself: what it is and how it stands, from `/proc` and `/sys` alone.

mod addresses;
mod facts;
mod meminfo;
mod metrics;
mod mounts;
mod platform;
mod traffic;
mod usage;

pub use facts::{Host, ServerInfo};
pub use metrics::Metrics;
pub use mounts::Mount;
