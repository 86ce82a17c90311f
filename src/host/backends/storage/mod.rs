//! Storage queries that need root: health, repair and disk usage.

mod disks;
mod health;
mod md;
mod pools;
mod repair;
mod smart;
mod usage;

pub use disks::Storage;
pub use health::DiskHealth;
pub use usage::DiskUsage;
