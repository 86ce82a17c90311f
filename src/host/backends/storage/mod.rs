//! Storage queries that need root: health, repair and disk usage.

mod disks;
mod health;
mod md;
mod pools;
mod repair;
mod smart;
mod space;
mod usage;

pub use disks::Storage;
pub use health::DiskHealth;
pub use space::{CleanupRequest, DiskReport, DiskReports};
pub use usage::DiskUsage;
