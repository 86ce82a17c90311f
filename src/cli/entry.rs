//! From the command line to the subcommand that it names.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::sys::refuse_huge_pages;

#[cfg(feature = "everything")]
use super::everything;
use super::{
    agent, audit, bridge, cert, check, client_config, completions, describe, doctor, helper, inbox,
    init, jail, job, mdns, metrics, notify, owner, pair, reaper, serve, state, status, top, trial,
    unit_client,
};

/// The gate between AI clients and a home server.
#[derive(Debug, Parser)]
#[command(name = "gatewren", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Start on embedded defaults and say how to connect.
    Try(trial::Args),
    /// Set up this box: its names, its port, its certificate and a first agent.
    Init(init::Args),
    /// Serve as the settings say; systemd starts this.
    Serve(serve::Args),
    /// Serve the reference fixtures for testing MCP clients.
    #[cfg(feature = "everything")]
    Everything(everything::Args),
    /// Give out, list and revoke the tokens of AI clients.
    Agent(agent::Args),
    /// Show a one-time code with which a client fetches a token of its own.
    Pair(pair::Args),
    /// Carry an MCP client on standard input and output to a gatewren elsewhere.
    Bridge(bridge::Args),
    /// Print what a client is to be told, so that it comes in here.
    ClientConfig(client_config::Args),
    /// Set the owner's password, and see and end what was signed in.
    Owner(owner::Args),
    /// Decide on what agents propose, and allow things for a while.
    Inbox(inbox::Args),
    /// Look at what goes on in the background, and end it.
    Job(job::Args),
    /// Make the server known on the local network, with the pin of its certificate.
    Mdns(mdns::Args),
    /// See the owner's channels, and try them.
    Notify(notify::Args),
    /// Give out the token with which a Prometheus looks at the metrics.
    Metrics(metrics::Args),
    /// See in the terminal what is called, what runs and what waits.
    Top(top::Args),
    /// Check the record of every call.
    Audit(audit::Args),
    /// See, renew, trust and replace the certificate that clients are shown.
    Cert(cert::Args),
    /// Say whether the settings are good, and what to mend.
    Check(check::Args),
    /// Say whether it serves, whom, and what waits.
    Status(status::Args),
    /// Look at everything that can be wrong, and say what to do.
    Doctor(doctor::Args),
    /// Print a settings file with every key, commented out at its default.
    Describe(describe::Args),
    /// Read and change the document that describes the box.
    State(state::Args),
    /// Print the completions of a shell.
    Completions(completions::Args),
    /// Run commands for the front: the part that is root.
    Helper(helper::Args),
}

/// Everything that the program does.
pub fn main() -> ExitCode {
    // Before clap: it stands in the way of every command that is run.
    match std::env::args_os().nth(1) {
        Some(name) if name == reaper::NAME => return reaper::run(),
        Some(name) if name == jail::NAME => return jail::run(),
        Some(name) if name == unit_client::NAME => return unit_client::run(),
        _ => {}
    }
    refuse_huge_pages();
    match Cli::parse().command {
        Commands::Try(args) => trial::run(&args),
        Commands::Init(args) => init::run(&args),
        Commands::Serve(args) => serve::run(&args),
        #[cfg(feature = "everything")]
        Commands::Everything(args) => everything::run(args),
        Commands::Helper(args) => helper::run(args),
        Commands::Agent(args) => agent::run(&args),
        Commands::Pair(args) => pair::run(&args),
        Commands::Bridge(args) => bridge::run(&args),
        Commands::ClientConfig(args) => client_config::run(&args),
        Commands::Owner(args) => owner::run(&args),
        Commands::Inbox(args) => inbox::run(&args),
        Commands::Job(args) => job::run(&args),
        Commands::Mdns(args) => mdns::run(&args),
        Commands::Notify(args) => notify::run(&args),
        Commands::Metrics(args) => metrics::run(&args),
        Commands::Top(args) => top::run(&args),
        Commands::Audit(args) => audit::run(&args),
        Commands::Cert(args) => cert::run(&args),
        Commands::Check(args) => check::run(&args),
        Commands::Status(args) => status::run(&args),
        Commands::Doctor(args) => doctor::run(&args),
        Commands::Describe(args) => describe::run(&args),
        Commands::State(args) => state::run(&args),
        Commands::Completions(args) => completions::run(&args, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines and columns of a terminal that nobody has made larger than usual.
    const SCREEN: (usize, usize) = (48, 100);

    fn fits(command: &mut clap::Command) {
        let help = command.render_help().to_string();
        let widest = help.lines().map(|line| line.chars().count()).max();
        let name = command.get_name().to_owned();
        assert!(help.lines().count() <= SCREEN.0, "{name}: {help}");
        assert!(widest.unwrap_or(0) <= SCREEN.1, "{name}: {help}");
        command.get_subcommands_mut().for_each(fits);
    }

    #[test]
    fn each_help_fits_a_screen() {
        fits(&mut Cli::command());
    }
}
