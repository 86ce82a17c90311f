//! The subcommands that systemd, the front or the helper starts.

pub mod helper;
pub mod jail;
pub mod reaper;
pub mod serve;
pub mod unit_client;
