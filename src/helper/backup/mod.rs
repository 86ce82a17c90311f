//! Backups: targets, archives, restic repositories, and how each is made, verified and restored.

pub mod added_targets;
pub mod archive;
pub mod check;
pub mod create;
pub mod delete;
mod early_sync;
mod engine_data;
mod engine_restore;
mod engine_source;
mod file_digest;
pub mod listing;
pub mod mounts;
pub mod operations;
pub mod restic;
pub mod restic_create;
pub mod restic_store;
mod restorable;
pub mod restore;
mod source;
pub mod targets;
