//! The cost of the state: writing, following, reading, notifying subscribers; as multiples of the minimal cost.
//!
//! ```text
//! cargo bench --bench state                    # Markdown tables, six to seven minutes
//! cargo bench --bench state -- --json          # the same as one JSON object
//! cargo bench --bench state -- --quick         # one short round: shows that it runs, not how fast
//! cargo bench --bench state -- --rows 'told' --rounds 3
//! TMPDIR=/dev/shm cargo bench --bench state    # on another file system
//! CARGO_PROFILE_BENCH_LTO=off cargo bench --bench state   # built in a fraction of the time
//! ```
//!
//! Each figure has an anchor that is measured in turn with it, and only the ratio counts:
//!
//! - a commit, with SQLite alone: the same bytes into a table without constraints, under the same pragmas;
//! - a read, with `serde_json::to_vec` of the same value, and with hyper and a body of the same size;
//! - a notification and the memory of a subscriber, with hyper that sends every open stream an event of the same size
//!   on a line from a pipe: no database, no document, no JSON.
//!
//! This process commits the changes that subscribers are notified of, so they take the longest path: gatewren must
//! notice them first. The time is measured from the return of COMMIT to the whole decrypted event at the client. This
//! program writes through the module `state`, as gatewren does, because no interface lets a client write as fast as its
//! writer can.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod common;

mod args;
mod commits;
mod documents;
mod fan_out;
mod reads;
mod report;
mod rounds;

use std::process::ExitCode;

use clap::Parser as _;
use gatewren_base::sys;
use gatewren_store::state;

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
