//! The command line.

use crate::common::args::Common;

/// Measures gatewren's calls against plain hyper.
#[derive(Debug, clap::Parser)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// Connections with one call in flight each, separated by commas
    #[arg(long, default_value = "1,16,64", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=512))]
    pub connections: Vec<u32>,
}
