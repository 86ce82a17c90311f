//! `gatewren client-config`: prints the configuration that a client needs to connect to this server.

mod entry;
mod output;

pub use entry::{ClientConfigArgs, run};
