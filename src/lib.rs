//! gatewren: the gate between AI clients and a home server.

mod auth;
mod config;
mod exec;
mod protocol;
mod registry;
mod sys;
mod vault;
