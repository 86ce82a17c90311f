//! Backups: targets, archives, restic repositories, and how each is made, verified and restored.

pub mod added_targets;
pub mod archive;
pub mod check;
pub mod create;
pub mod delete;
pub mod listing;
pub mod mounts;
pub mod operations;
pub mod restic;
pub mod restic_create;
pub mod restic_store;
pub mod restore;
pub mod targets;
