//! What a person types; one file a subcommand.
#![forbid(unsafe_code)]

mod entry;
#[cfg(feature = "everything")]
mod everything;
mod helper;
mod reaper;
mod runtime;
mod serve;
mod trial;

pub use entry::main;
