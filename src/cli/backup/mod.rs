//! `gatewren backup`: lists, creates, verifies, restores and deletes backups for the owner.

mod context;
mod entry;
mod keep_rule;
mod print;

pub use entry::{BackupArgs, run};
