//! From the command line to the subcommand that it names.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use super::{agent, audit, check, completions, helper, reaper, serve, trial};

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
    /// Give out, list and revoke the tokens of AI clients.
    Agent(agent::Args),
    /// Check the record of every call.
    Audit(audit::Args),
    /// Say whether the settings are good, and what to mend.
    Check(check::Args),
    /// Print the completions of a shell.
    Completions(completions::Args),
    /// Run commands for the front: the part that is root.
    Helper(helper::Args),
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
        Commands::Agent(args) => agent::run(&args),
        Commands::Audit(args) => audit::run(&args),
        Commands::Check(args) => check::run(&args),
        Commands::Completions(args) => completions::run(&args, Cli::command()),
    }
}
