//! gatewren's performance goals, measured part by part, and compared with the targets: `tests/bench/run`.
//!
//! ```text
//! tests/bench/run            # builds everything, measures everything, writes tables and drawings
//! cargo bench --profile meter --bench goals -- --part calls --peers FILE    # only one part
//! ```
//!
//! Each figure of gatewren is taken between two of its anchor, and only the ratio counts: a slowdown of the machine
//! affects both. gatewren is measured as released, over TLS and with its audit, so its anchor is hyper over TLS with
//! the same certificate. The peers serve plain HTTP, as their documentation shows, so their anchor is plain hyper.
//! Small calls of the Rust peers are also measured behind a guard, with TLS, a token and a row about each request in
//! SQLite; the anchor of this form is hyper over TLS.
//! One wrong reply ends the run.

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod common;

// The state is measured as in `cargo bench --bench state`.
#[path = "../state/documents.rs"]
mod documents;
#[path = "../state/fan_out.rs"]
mod fan_out;
#[path = "../state/reads.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod reads;

// Instructions are counted as in `tests/bench/budgets/run`.
#[path = "../budgets/counter.rs"]
mod counter;
#[path = "../budgets/profile.rs"]
#[expect(dead_code, reason = "each benchmark uses a part of the shared code")]
mod profile;

mod args;
mod balanced;
mod calls;
mod context;
mod counts;
mod figure;
mod flooded;
mod growth;
mod large;
mod page;
mod report;
mod rest;
mod rows;
mod shell;
mod siege;
mod spawn;
mod state;
mod streams;
mod svg;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Part};
use common::Error;
use common::start::start;
use context::Context;

fn main() -> ExitCode {
    let args = Args::parse().settled();
    let mut common = args.common.clone();
    // A child of this program measures without cargo's `--bench`.
    common.bench |= args.spawn.is_some() || args.report.is_some();
    start("goals", &common, async || run(args).await)
}

async fn run(args: Args) -> Result<String, Error> {
    if let Some(spawned) = &args.spawn {
        return spawn::run(spawned);
    }
    if let Some(folder) = &args.report {
        return report::report(folder);
    }
    let part = args.part.ok_or("name a part, or a folder to report")?;
    let cx = Context::new(args)?;
    let findings = match part {
        Part::Calls => calls::measure(&cx).await?,
        Part::Shell => shell::measure(&cx).await?,
        Part::Streams => streams::measure(&cx).await?,
        Part::State => state::measure(&cx).await?,
        Part::Rest => rest::measure(&cx).await?,
        Part::Large => large::measure(&cx).await?,
        Part::Counts => counts::measure(&cx).await?,
        Part::Growth => growth::measure(&cx).await?,
        Part::Fronts => balanced::measure(&cx).await?,
    };
    let name = format!("{part:?}").to_lowercase();
    Ok(serde_json::to_string(&cx.found(name, findings)?)?)
}
