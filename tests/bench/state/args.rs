//! The command line.

use std::time::Duration;

use crate::common::args::Common;

/// Measures gatewren's state against SQLite, `serde_json` and plain hyper.
#[derive(Debug, clap::Parser)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// Changes that subscribers are notified of, per row and round; there are two a second
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub changes: u32,

    /// One round of short samples
    #[arg(long)]
    pub quick: bool,
}

impl Args {
    /// Applies `--quick`.
    pub fn settled(mut self) -> Self {
        if self.quick {
            self.common.rounds = 1;
            self.common.seconds = Duration::from_millis(50);
            self.changes = 2;
        }
        self
    }
}
