//! Tools about the host.

pub mod disk_space;
pub mod disks;
pub mod files;
pub mod firmware;
pub mod network;
pub mod power;
pub mod probes;
pub mod processes;
pub mod repairs;
pub mod server;
pub mod settings;
pub mod ssh;
pub mod storage;
pub mod tunnels;
pub mod wifi;
