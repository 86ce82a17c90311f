//! Calls per second, CPU per call and latency of gatewren, as ratios to hyper alone.
//!
//! ```text
//! cargo bench --bench calls                   # a Markdown table, three to four minutes
//! cargo bench --bench calls -- --json         # the same as one JSON object
//! cargo bench --bench calls -- --rows whoami --connections 16 --rounds 3
//! cargo bench --bench calls -- --binary FILE  # another build, such as the released one
//! ```
//!
//! The anchor is hyper on a single-threaded runtime that reads the request's body and responds with a fixed one as
//! long as gatewren's. It is measured right before and right after each sample of gatewren, over TLS with the same
//! certificate. Only the ratio counts, because absolute figures vary with the load of the machine. Every reply is
//! checked: its status, its id, and that it is a result. One wrong reply ends the run. Limits on calls are set as
//! high as the settings allow. Everything else is as released, including the audit, except that the log level is
//! `warn`.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod common;

mod args;
mod report;
mod rounds;
mod rows;

use std::process::ExitCode;

use clap::Parser as _;

use args::Args;
use common::start::start;

fn main() -> ExitCode {
    let args = Args::parse();
    start("calls", &args.common, async || {
        let report = rounds::measure(&args).await?;
        Ok(if args.common.json {
            report.json()
        } else {
            report.markdown()
        })
    })
}
