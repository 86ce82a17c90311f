//! What a person types; one file a subcommand.
#![forbid(unsafe_code)]

mod check;
mod entry;
mod helper;
mod reaper;
mod runtime;
mod serve;
mod trial;

pub use entry::main;
