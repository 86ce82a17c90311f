//! The options of every benchmark.

use std::path::PathBuf;
use std::time::Duration;

/// The part of the command line that does not depend on the benchmark.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,

    /// Number of rounds
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,

    /// Seconds of one sample
    #[arg(long, default_value = "0.5", value_parser = seconds)]
    pub seconds: Duration,

    /// Only the rows whose name contains this
    #[arg(long, default_value = "")]
    pub rows: String,

    /// The gatewren to measure
    #[arg(long, value_name = "FILE", default_value = env!("CARGO_BIN_EXE_gatewren"))]
    pub binary: PathBuf,

    /// The lowest severity that gatewren logs
    #[arg(long, default_value = "warn")]
    pub log: String,

    /// Run as the anchor, with a body of this many bytes; the benchmark starts itself with it
    #[arg(long, hide = true)]
    pub bare: Option<usize>,

    /// The anchor's certificate; plain HTTP without one
    #[arg(long, hide = true, requires = "key")]
    pub cert: Option<PathBuf>,

    /// The anchor's key
    #[arg(long, hide = true)]
    pub key: Option<PathBuf>,

    /// Set by `cargo bench`, not by `cargo test`
    #[arg(long, hide = true)]
    pub bench: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.05..=60.0).contains(&number) {
        Ok(Duration::from_secs_f64(number))
    } else {
        Err("from 0.05 to 60".to_owned())
    }
}
