//! gatewren: the gate between AI clients and a home server.

mod config;
#[expect(
    dead_code,
    reason = "spoken by the helper and its client, which come next"
)]
mod exec;
mod state;
mod sys;
