//! What a person types; one file a subcommand.
#![forbid(unsafe_code)]

mod agent;
mod audit;
mod cert;
mod check;
mod check_box;
mod completions;
mod deed;
mod describe;
mod entry;
#[cfg(feature = "everything")]
mod everything;
mod helper;
mod inbox;
mod job;
mod mdns;
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
mod trial;

pub use entry::main;

#[cfg(test)]
mod manual;
