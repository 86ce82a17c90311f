//! Instructions and allocations of gatewren's hot paths, counted by callgrind and compared with the accepted counts.
//!
//! ```text
//! tests/bench/budgets/run                 # builds the release binary if it is missing, counts, compares
//! tests/bench/budgets/run --accept        # and writes the counts into accepted.toml
//! tests/bench/budgets/run --table 30      # the functions with most instructions and allocations of each path
//! ```
//!
//! Times vary with the load of the machine; the number of instructions of a call is the same everywhere. The real
//! server runs under callgrind, over TLS and with its audit, on one core and therefore with one thread for all its
//! connections. It is called through a socket, as by any client. The counts of its threads over a batch of calls are
//! divided by their number. Allocations are counted at the calls of the server's allocator, so the binary is exactly
//! the released one. The cheapest of several batches counts, because gatewren also inspects its host in the same
//! thread.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod common;

mod args;
mod budget;
mod counter;
mod emulated;
mod pages;
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
