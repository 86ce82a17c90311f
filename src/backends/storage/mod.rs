//! The host's storage beyond what any user sees of it.

mod disks;
mod usage;

pub use disks::Storage;
pub use usage::DiskUsage;
