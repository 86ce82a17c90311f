//! From the command line to the subcommand that it names.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::{check, helper, reaper, serve, trial};

/// The gate between AI clients and a home server.
#[derive(Debug, Parser)]
#[command(name = "gatewren", version)]
struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Start on embedded defaults and say how to connect.
    Try(trial::Args),
    /// Serve as the settings say; systemd starts this.
    Serve(serve::Args),
    /// Run commands for the front: the part that is root.
    Helper(helper::Args),
    /// Say whether the settings are good, and what to mend.
    Check(check::Args),
}

/// Everything that the program does.
pub fn main() -> ExitCode {
    // Before clap: it stands in the way of every command that is run.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|name| name == reaper::NAME)
    {
        return reaper::run();
    }
    match Cli::parse().command {
        Commands::Try(args) => trial::run(&args),
        Commands::Serve(args) => serve::run(&args),
        Commands::Helper(args) => helper::run(args),
        Commands::Check(args) => check::run(&args),
    }
}
