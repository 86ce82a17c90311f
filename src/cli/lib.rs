//! The command line: one file for each subcommand.
#![forbid(unsafe_code)]

mod agent;
mod audit;
mod bridge;
mod cert;
mod check;
mod check_box;
mod client_config;
mod completions;
mod deed;
mod describe;
mod doctor;
mod door;
mod entry;
#[cfg(feature = "everything")]
mod everything;
mod helper;
mod inbox;
mod init;
mod jail;
mod job;
mod mdns;
mod metrics;
mod notify;
mod owner;
mod pair;
mod place;
mod program;
mod reaper;
mod reference;
mod runtime;
mod say;
mod serve;
mod state;
mod status;
mod table;
mod top;
mod trial;
mod unit_client;
mod units;

pub use entry::main;

#[cfg(test)]
mod manual;
