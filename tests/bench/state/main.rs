//! What the state costs: writing, following, reading, telling subscribers; as multiples of what must be paid.
//!
//! ```text
//! cargo bench --bench state                    # Markdown tables, six to seven minutes
//! cargo bench --bench state -- --json          # the same as one JSON object
//! cargo bench --bench state -- --quick         # one short round: whether all of it runs, hardly how fast
//! cargo bench --bench state -- --rows 'told' --rounds 3
//! TMPDIR=/dev/shm cargo bench --bench state    # on another file system
//! CARGO_PROFILE_BENCH_LTO=off cargo bench --bench state   # built in a fraction of the time
//! ```
//!
//! Each figure stands beside an anchor that is measured in turn with it, and only the ratio counts:
//!
//! - a commit, beside SQLite alone: the same bytes into a table without rules, under the same pragmas;
//! - a read, beside `serde_json::to_vec` of the same value, and beside hyper with a body of the same size;
//! - a notification and the memory of a subscriber, beside hyper that sends every open stream an event of the
//!   same size when a pipe says so: no database, no document, no JSON.
//!
//! The changes that subscribers are told of are committed by this process, so they take the longest way:
//! gatewren must notice them first. Time runs from the return of COMMIT to the whole event in the client's
//! hands, decrypted. The room `state` stands in this program too, as it is in gatewren, since no door
//! lets a client write as fast as its writer can.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses its part of what they share")]
mod common;

// The room that is measured, and those that it may import (`tests/it/house_rules.rs`).
#[path = "../../../src/config/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the daemon uses the rest")]
mod config;
#[path = "../../../src/state/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the daemon uses the rest")]
mod state;
#[path = "../../../src/sys/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the daemon uses the rest")]
mod sys;
#[path = "../../../src/telemetry/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the daemon uses the rest")]
mod telemetry;

mod args;
mod commits;
mod documents;
mod fan_out;
mod reads;
mod report;
mod rounds;

use std::process::ExitCode;

use clap::Parser as _;

use args::Args;
use common::start::start;

fn main() -> ExitCode {
    let args = Args::parse().settled();
    start("state", &args.common, async || {
        let report = rounds::measure(&args).await?;
        Ok(if args.common.json {
            report.json()
        } else {
            report.markdown()
        })
    })
}
