//! gatewren: the gate between AI clients and a home server.

mod backends;
mod config;
mod exec;
mod helper_client;
mod state;
mod sys;
