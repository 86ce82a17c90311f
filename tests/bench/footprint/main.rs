//! What gatewren costs while nobody calls: memory, CPU time and how soon it answers after a start; beside a small
//! server with the Rust SDK (rmcp) in the same run.
//!
//! ```text
//! cargo bench --bench footprint                   # a Markdown table, about three minutes
//! cargo bench --bench footprint -- --json         # the same as one JSON object
//! cargo bench --bench footprint -- --binary FILE  # another build, such as the one that ships
//! ```
//!
//! The two do very different things: rmcp's server has one tool, plain HTTP and nothing to remember, gatewren
//! speaks TLS, keeps two databases, watches the box and has a second process for what takes root. What is
//! measured is what its owner pays for that. Every reply is checked; one wrong reply ends the run.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses its part of what they share")]
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
