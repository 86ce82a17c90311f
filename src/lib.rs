//! gatewren: the gate between AI clients and a home server.

mod backends;
mod cli;
mod exec;
mod helper;
mod helper_client;
mod sys;

pub use cli::main;
