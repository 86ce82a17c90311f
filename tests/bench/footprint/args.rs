//! The command line.

use std::path::PathBuf;

use crate::common::args::Common;

/// Measures gatewren at rest against a small server with rmcp.
#[derive(Debug, clap::Parser)]
#[command(
    mut_arg("rounds", |arg| arg.default_value("11").help("How often each server is started")),
    mut_arg("seconds", |arg| arg.default_value("60").help("Seconds in which nothing is asked of them")),
    mut_arg("log", |arg| arg.default_value("error")),
    mut_arg("rows", |arg| arg.hide(true))
)]
pub struct Args {
    #[command(flatten)]
    pub common: Common,

    /// The server with rmcp; built from tests/bench/peers when absent
    #[arg(long, value_name = "FILE")]
    pub peer: Option<PathBuf>,
}
