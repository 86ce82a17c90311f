//! The machine itself: what it is and how it stands, from `/proc` and `/sys` alone.

mod addresses;
mod facts;
mod meminfo;
mod metrics;
mod mounts;
mod platform;
mod traffic;
mod usage;

pub use addresses::InterfaceAddress;
pub use facts::{Gatewren, Host, ServerInfo};
pub use meminfo::Space;
pub use metrics::{Metrics, Pressure};
pub use mounts::Mount;
pub use platform::Cpu;
pub use traffic::{DiskTraffic, NetworkTraffic};
pub use usage::Temperature;
