//! gatewren: the gate between AI clients and a home server.

mod backends;
mod cli;
mod config;
mod exec;
mod helper;
mod helper_client;
mod observer;
mod state;
mod sys;

pub use cli::main;
