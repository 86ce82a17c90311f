//! gatewren: the gate between AI clients and a home server.

mod auth;
mod config;
#[expect(
    dead_code,
    reason = "spoken by the helper and its client, which come next"
)]
mod exec;
mod http;
mod sys;
mod telemetry;
mod vault;
