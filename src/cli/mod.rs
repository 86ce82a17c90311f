//! What a person types; one file a subcommand.
#![forbid(unsafe_code)]

mod entry;
mod helper;
mod reaper;

pub use entry::main;
