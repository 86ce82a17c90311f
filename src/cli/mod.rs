//! What a person types; one file a subcommand.
#![forbid(unsafe_code)]

mod agent;
mod audit;
mod check;
mod completions;
mod entry;
mod helper;
mod place;
mod reaper;
mod runtime;
mod say;
mod serve;
mod trial;

pub use entry::main;
