//! `gatewren client-config`: prints or writes the configuration that a client needs to connect to this server.

mod entry;
mod json_entry;
mod output;
mod settings_file;
mod toml_entry;
mod write;

pub use entry::{ClientConfigArgs, run};
