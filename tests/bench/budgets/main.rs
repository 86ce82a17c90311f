//! Instructions and allocations of gatewren's hot paths, counted by callgrind and held against what is accepted.
//!
//! ```text
//! tests/bench/budgets/run                 # builds what ships if it is not there, counts, compares
//! tests/bench/budgets/run --accept        # and writes what it counted into accepted.toml
//! tests/bench/budgets/run --table 30      # where the instructions and the allocations of each path are
//! ```
//!
//! Time on a machine that does other things too says little; how many instructions a call takes is the same
//! everywhere. The real server runs under callgrind, on one core and so with one thread for all its connections,
//! over TLS, with its audit. It is asked through a socket, as any client would, and what its threads did in so
//! many calls is divided by their number. Memory is counted where the server asks its allocator for it, so that
//! nothing else is built in than what ships. Of several batches the cheapest counts: gatewren looks at its box
//! meanwhile, in the same thread.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses its part of what they share")]
mod common;

mod args;
mod budget;
mod counter;
mod emulated;
mod paths;
mod profile;
mod report;
mod share;

use std::process::ExitCode;

use clap::Parser as _;

use args::Args;
use common::start::start;

fn main() -> ExitCode {
    let args = Args::parse();
    start("budgets", &args.common, async || {
        let shares = paths::count(&args).await?;
        report::report(&args, &shares)
    })
}
