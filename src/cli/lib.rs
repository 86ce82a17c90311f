//! The command line: one file for each subcommand.
#![forbid(unsafe_code)]

mod agent;
mod audit;
mod backup;
mod bridge;
mod cert;
mod check;
mod check_host;
mod client_config;
mod completions;
mod console;
mod container_counts;
mod describe;
mod doctor;
mod entry;
#[cfg(feature = "everything")]
mod everything;
mod examples;
mod fronts;
mod help;
mod inbox;
mod init;
mod job;
mod mdns;
mod metrics;
mod notify;
mod notify_reach;
mod owner;
mod owner_action;
mod pair;
mod process;
mod reference;
mod schedule;
mod session;
mod state;
mod status;
mod switched_off;
mod tool_figures;
mod tool_table;
mod top;
mod try_out;
mod try_words;
mod units;
mod watch;

pub use entry::main;

mod manual;
