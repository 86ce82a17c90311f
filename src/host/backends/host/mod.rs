//! The host: its facts and metrics from `/proc` and `/sys`, and from the helper what a sandbox hides.

mod addresses;
mod clock;
mod counters;
mod disks;
mod events;
mod facts;
mod gpus;
mod host_view_cache;
mod interfaces;
mod listeners;
mod machine;
mod meminfo;
mod metrics;
mod mounts;
mod mounts_and_clock;
mod neighbors;
mod platform;
#[cfg(test)]
mod recording;
mod resolver;
mod routes;
mod temperatures;
mod traffic;
mod usage;

pub use addresses::ReachableAddress;
pub use clock::{ServerTime, zone};
pub use counters::HostCounters;
pub use disks::{Disk, DiskContent, Partition};
pub use events::HostEvents;
pub use facts::{ServerInfo, reboot_packages};
pub use interfaces::Interface;
pub use listeners::{HostListener, container as container_of_group, unit as unit_of_group, users};
pub use machine::{Host, HostFacts};
pub use metrics::HostMetrics;
pub use mounts::{DataLocation, FilesystemUsage, MountedFilesystem};
pub use neighbors::Neighbor;
pub use resolver::resolver;
pub use routes::Route;
pub use temperatures::Temperature;
pub use traffic::NetworkTraffic;
pub use usage::boot_time_s;
