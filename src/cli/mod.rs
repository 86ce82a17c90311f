//! What a person types; one file a subcommand.
#![forbid(unsafe_code)]

mod agent;
mod audit;
mod check;
mod check_box;
mod client_config;
mod completions;
mod deed;
mod describe;
mod entry;
#[cfg(feature = "everything")]
mod everything;
mod helper;
mod inbox;
mod job;
mod metrics;
mod notify;
mod owner;
mod place;
mod reaper;
mod reference;
mod runtime;
mod say;
mod serve;
mod state;
mod table;
mod top;
mod trial;

pub use entry::main;

#[cfg(test)]
mod manual;
