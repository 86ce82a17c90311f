//! gatewren: the gate between AI clients and a home server.

mod app;
mod auth;
mod backends;
mod cli;
mod config;
mod dispatch;
mod exec;
mod guard;
mod helper;
mod helper_client;
mod http;
mod observer;
mod policy;
mod protocol;
mod registry;
mod state;
mod sys;
mod telemetry;
mod toolsets;
mod transport;
mod vault;

pub use cli::main;
