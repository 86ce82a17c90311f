//! What can be said on the command line.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::args::Common;

/// Measures one part of what gatewren is to reach, or puts the parts together.
#[derive(Debug, clap::Parser)]
#[command(
    mut_arg("json", |arg| arg.hide(true)),
    mut_arg("rows", |arg| arg.hide(true))
)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// What is measured; its figures are printed as one JSON object
    #[arg(long, value_enum, required_unless_present_any = ["report", "bare", "spawn"])]
    pub part: Option<Part>,

    /// Reads the parts in this folder instead, and writes the tables and the drawings there
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,

    /// Servers of others, as a JSON list of names, commands, paths and revisions
    #[arg(long, value_name = "FILE")]
    pub peers: Option<PathBuf>,

    /// What `cargo bench --bench footprint -- --json` printed
    #[arg(long, value_name = "FILE")]
    pub footprint: Option<PathBuf>,

    /// Where the containers are in which commands are run
    #[arg(long, value_name = "FOLDER")]
    pub lxcpath: Option<PathBuf>,

    /// Start something again and again, without any server; how the benchmark starts itself
    #[arg(long, hide = true)]
    pub spawn: Option<String>,

    /// Changes that subscribers are told of, per row and round; there are two a second
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub changes: u32,

    /// One round of short samples
    #[arg(long)]
    pub quick: bool,
}

/// The parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Small calls beside hyper and beside the peers
    Calls,
    /// Commands on the host and in a container
    Shell,
    /// Streams that are open, and changes that are told to them
    Streams,
    /// Documents and other programs' commits
    State,
    /// Memory and the way to the first answer
    Rest,
    /// Handshakes, and large calls
    Large,
    /// Instructions and system calls
    Counts,
    /// What becomes of all that when there is more of everything
    Growth,
}

impl Args {
    /// With what `--quick` means.
    pub fn settled(mut self) -> Self {
        if self.quick {
            self.common.rounds = self.common.rounds.min(2);
            self.common.seconds = self.common.seconds.min(Duration::from_millis(150));
            self.changes = self.changes.min(3);
        }
        self
    }
}
