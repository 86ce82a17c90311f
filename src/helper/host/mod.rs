//! The host itself: its files, disks, settings, accounts and updates.

pub mod allowed_paths;
pub mod authorized_keys;
pub mod facts;
pub mod files;
pub mod firmware;
pub mod hosts_file;
pub mod mail;
pub mod processes;
pub mod records;
pub mod repair;
pub mod search;
pub mod settings;
pub mod ssh_keys;
pub mod storage;
pub mod update_health;
pub mod update_run;
pub mod update_step;
pub mod updates;
pub mod zram;
