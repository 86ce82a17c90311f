//! The root side: accepts typed operations from the front alone, runs them, and leaves nothing behind.
#![forbid(unsafe_code)]

mod accounts;
mod bounds;
mod cage;
mod ceilings;
mod commands;
mod complaints;
mod containers;
mod definitions;
mod events;
mod files;
mod host_view;
mod house;
mod journal;
mod lxc;
mod network;
mod outbox;
mod outputs;
mod perform;
mod power;
mod processes;
mod programs;
mod pump;
mod reaper;
mod refusal;
mod reports;
mod serve;
mod stop;
mod strays;
mod tools;
mod units;
mod updates;
mod usage;
mod vitals;

pub use accounts::uid_of;
pub use house::sweep;
pub use reaper::reap;
pub use serve::{Lifeline, ReadPolicy, Settings, serve};
