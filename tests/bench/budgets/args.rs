//! The command line.

use std::path::PathBuf;

use crate::common::args::Common;

/// Counts instructions and allocations of gatewren's calls and compares them with the accepted ones.
#[derive(Debug, clap::Parser)]
#[command(
    mut_arg("rounds", |arg| arg.hide(true)),
    mut_arg("seconds", |arg| arg.hide(true)),
    mut_arg("json", |arg| arg.help("Print one JSON object instead of lines"))
)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// Calls of each kind in one batch; the cheapest of ten batches counts
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub calls: u32,

    /// Changes that subscribers are notified of; the cheapest counts, and each takes more than half a second
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub changes: u32,

    /// A binary for arm64, counted under qemu
    #[arg(long, value_name = "FILE", requires = "plugin")]
    pub arm64: Option<PathBuf>,

    /// A binary for armhf, counted under qemu
    #[arg(long, value_name = "FILE", requires = "plugin")]
    pub armhf: Option<PathBuf>,

    /// The counting plugin of qemu: emulated.c, compiled
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,

    /// The file of accepted counts
    #[arg(long, value_name = "FILE",
          default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bench/budgets/accepted.toml"))]
    pub budgets: PathBuf,

    /// Accept the new counts and write them into the file
    #[arg(long)]
    pub accept: bool,

    /// Print this many functions of each path, the most costly first
    #[arg(long, value_name = "FUNCTIONS", default_value_t = 0)]
    pub table: usize,
}
