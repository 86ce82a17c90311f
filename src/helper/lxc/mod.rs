//! Containers of LXC: their definitions, files, logs, copies and usage.

pub mod config_files;
pub mod copies;
pub mod definition;
pub mod delays;
pub mod files;
pub mod jailed;
pub mod logs;
pub mod network;
pub mod paths;
pub mod relocation;
pub mod snapshots;
pub mod start_errors;
pub mod storage;
pub mod usage;
pub mod vitals;
