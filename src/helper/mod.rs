//! The root side: accepts typed operations from the front alone, runs them, and leaves nothing behind.
#![forbid(unsafe_code)]

mod accounts;
mod answers;
mod bounds;
mod cage;
mod ceilings;
mod claims;
mod commands;
mod complaints;
mod container_files;
mod container_logs;
mod containers;
mod copies;
mod deeds;
mod definition;
mod definitions;
mod events;
mod files;
mod host_view;
mod house;
mod long;
mod lxc;
mod network;
mod outbox;
mod outputs;
mod perform;
mod places;
mod power;
mod programs;
mod pump;
mod reaper;
mod refusal;
mod reports;
mod serve;
mod snapshots;
mod stage;
mod stop;
mod strays;
mod tools;
mod updates;
mod usage;
mod vitals;

pub use accounts::uid_of;
pub use house::sweep;
pub use reaper::reap;
pub use serve::{Lifeline, ReadPolicy, Settings, serve};
