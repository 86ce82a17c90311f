//! Fuzz targets: each checks a property that must hold for any bytes. The fuzzer in `tests/fuzz` runs them; every
//! test run replays its corpus.
#![forbid(unsafe_code)]
#![expect(
    clippy::panic,
    reason = "a violated property is a finding, and the fuzzer detects a finding by its panic"
)]

mod accept;
mod arguments;
mod cursors;
mod engine_events;
mod engine_logs;
mod event_ids;
mod frames;
mod header_values;
mod headers;
mod hosts;
mod input;
mod jsonrpc;
mod lines;
mod names;
mod patches;
mod pointers;
mod results;
mod schemas;
mod sealed;
mod secrets;
mod settings;
mod sse;
mod targets;
mod templates;
mod traces;

pub use targets::{FuzzTarget, TARGETS};
