//! What gatewren is to reach, measured part by part, and put together with the goals: `tests/bench/run`.
//!
//! ```text
//! tests/bench/run            # builds everything, measures everything, writes tables and drawings
//! cargo bench --profile meter --bench goals -- --part calls --peers FILE    # one part alone
//! ```
//!
//! Each figure of gatewren is taken between two of its anchor, and only the ratio counts: what slows the machine down
//! slows both down. gatewren is measured as it ships, over TLS and with its audit, so its anchor is hyper over TLS
//! with the same certificate; the peers serve plain HTTP, as their documentation shows, so theirs is plain hyper.
//! One wrong reply ends the run.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses its part of what they share")]
mod common;

mod args;
mod calls;
mod context;
mod figure;
mod rows;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Part};
use common::Error;
use common::start::start;
use context::Context;

fn main() -> ExitCode {
    let args = Args::parse().settled();
    let common = args.common.clone();
    start("goals", &common, async || run(args).await)
}

async fn run(args: Args) -> Result<String, Error> {
    let Some(part) = args.part else {
        return Err("name a part, or a folder to report".into());
    };
    let cx = Context::new(args)?;
    let findings = match part {
        Part::Calls => calls::measure(&cx).await?,
        _ => return Err("not yet".into()),
    };
    let name = format!("{part:?}").to_lowercase();
    Ok(serde_json::to_string(&cx.found(name, findings)?)?)
}
