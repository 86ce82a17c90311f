//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::args::Common;

/// Measures one part of gatewren's performance goals, or combines the parts.
#[derive(Debug, clap::Parser)]
#[command(
    mut_arg("json", |arg| arg.hide(true)),
    mut_arg("rows", |arg| arg.hide(true))
)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// The part to measure; its figures are printed as one JSON object
    #[arg(long, value_enum, required_unless_present_any = ["report", "bare", "spawn"])]
    pub part: Option<Part>,

    /// Read the parts in this folder instead, and write the tables and the drawings there
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,

    /// Other servers, as a JSON list of names, commands, paths and revisions
    #[arg(long, value_name = "FILE")]
    pub peers: Option<PathBuf>,

    /// The output of `cargo bench --bench footprint -- --json`
    #[arg(long, value_name = "FILE")]
    pub footprint: Option<PathBuf>,

    /// The directory of the containers in which commands run
    #[arg(long, value_name = "FOLDER")]
    pub lxcpath: Option<PathBuf>,

    /// Start a program repeatedly, without any server; the benchmark starts itself with it
    #[arg(long, hide = true)]
    pub spawn: Option<String>,

    /// Changes that subscribers are notified of, per row and round; there are two a second
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub changes: u32,

    /// One round of short samples
    #[arg(long)]
    pub quick: bool,
}

/// The parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Small calls, with hyper and the peers
    Calls,
    /// Commands on the host and in a container
    Shell,
    /// Open streams, and notifications of changes
    Streams,
    /// Documents and other programs' commits
    State,
    /// Memory and the time to the first reply
    Rest,
    /// Handshakes, and large calls
    Large,
    /// Instructions and system calls
    Counts,
    /// Growth of all figures with more sessions, revisions, containers, data and subscribers
    Growth,
    /// Calls through balancers to two fronts
    Fronts,
}

impl Args {
    /// Applies `--quick`.
    pub fn settled(mut self) -> Self {
        if self.quick {
            self.common.rounds = self.common.rounds.min(2);
            self.common.seconds = self.common.seconds.min(Duration::from_millis(150));
            self.changes = self.changes.min(3);
        }
        self
    }
}
