//! gatewren: the gate between AI clients and a home server.

mod auth;
mod config;
mod dispatch;
mod exec;
mod guard;
mod helper_client;
mod http;
mod policy;
mod protocol;
mod registry;
mod state;
mod sys;
mod telemetry;
mod transport;
mod vault;
