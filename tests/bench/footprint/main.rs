//! The cost of an idle gatewren: memory, CPU time and the time from a start to the first reply.
//!
//! A small server of the Rust SDK (rmcp) is measured in the same run.
//!
//! ```text
//! cargo bench --bench footprint                   # a Markdown table, about three minutes
//! cargo bench --bench footprint -- --json         # the same as one JSON object
//! cargo bench --bench footprint -- --binary FILE  # another build, such as the released one
//! ```
//!
//! The two servers do very different things. rmcp's server has one tool, plain HTTP and no state. gatewren has TLS,
//! keeps two databases, watches the host and has a second process for operations that need root. The benchmark
//! measures what its owner pays for that. Every reply is checked; one wrong reply ends the run.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod common;

mod args;
mod cost;
mod measure;
mod report;
mod servers;

use std::process::ExitCode;

use clap::Parser as _;

use args::Args;
use common::start::start;

fn main() -> ExitCode {
    let args = Args::parse();
    start("footprint", &args.common, async || {
        let report = measure::measure(&args).await?;
        Ok(if args.common.json {
            report.json()
        } else {
            report.markdown()
        })
    })
}
