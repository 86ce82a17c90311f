//! The host's storage beyond what any user sees of it.

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
