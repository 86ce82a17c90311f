//! Parses the command line and runs the subcommand that it names.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use gatewren_base::sys::refuse_huge_pages;

#[cfg(feature = "everything")]
use super::everything;
use super::help::with_whole_paragraphs;
use super::process::{helper, jail, reaper, serve, unit_client};
use super::{
    agent, audit, backup, bridge, cert, check, client_config, completions, describe, doctor, inbox,
    init, job, manual, mdns, metrics, notify, owner, pair, schedule, state, status, top, try_out,
    watch,
};

/// The help of `--json` for commands that also print lists.
const JSON_OR_LINES: &str = "Print JSON: one object, or one a line where there may be many";

/// The gateway between AI clients and a home server.
#[derive(Debug, Parser)]
#[command(name = "gatewren", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Start with embedded defaults and print how to connect.
    ///
    /// Creates a local certificate and a first agent.
    Try(try_out::TryArgs),
    /// Set up this host: its names, its port, its certificate and a first agent.
    ///
    /// Asks for everything that no option sets. Current values are kept, and running it again changes nothing. Run it
    /// as root.
    Init(init::InitArgs),
    /// Run the server with the settings; systemd starts this.
    Serve(serve::ServeArgs),
    /// Serve the reference fixtures for testing MCP clients.
    ///
    /// There is one tool, prompt or resource for each feature of the protocol. The fixtures do not access the host and
    /// change nothing.
    #[cfg(feature = "everything")]
    Everything(everything::EverythingArgs),
    /// Create, list, change and revoke AI agents and their tokens.
    #[command(after_help = agent::EXAMPLES)]
    Agent(agent::AgentArgs),
    /// Print a one-time code that a client exchanges for its own token.
    ///
    /// The code is printed as text and as a QR code.
    Pair(pair::PairArgs),
    /// Connect an MCP client on standard input and output to a gatewren on another machine.
    ///
    /// Needs no settings, no state directory and no privileges. While the server is unreachable, requests wait. If the
    /// server no longer knows the session, a new one is started. A tool call is never sent twice.
    Bridge(bridge::BridgeArgs),
    /// Print the configuration that a client needs to connect to this server.
    ClientConfig(client_config::ClientConfigArgs),
    /// Set the owner's password, and list and end sessions.
    Owner(owner::OwnerArgs),
    /// Decide on what agents propose, and allow things for a limited time.
    Inbox(inbox::InboxArgs),
    /// List, follow and cancel background jobs.
    Job(job::JobArgs),
    /// List, run, pause and delete the calls that agents have scheduled.
    Schedule(schedule::ScheduleArgs),
    /// List, create, verify, restore and delete backups.
    Backup(backup::BackupArgs),
    /// List, show and delete what agents have the server watch.
    Watch(watch::WatchArgs),
    /// Announce the server on the local network, with the pin of its certificate.
    Mdns(mdns::MdnsArgs),
    /// List the owner's notification channels, and test them.
    Notify(notify::NotifyArgs),
    /// Manage the token that Prometheus uses to read the metrics.
    #[command(after_help = metrics::EXAMPLES)]
    Metrics(metrics::MetricsArgs),
    /// Show in the terminal which calls run, wait and have ended.
    Top(top::TopArgs),
    /// Read and verify the audit of all calls.
    #[command(mut_arg("json", |json| json.help(JSON_OR_LINES)))]
    Audit(audit::AuditArgs),
    /// Show, renew, trust and replace the server's certificate.
    Cert(cert::CertArgs),
    /// Check the settings and whether this host fits them, and report what to fix.
    Check(check::CheckArgs),
    /// Show whether the server runs, who uses it, and pending changes.
    ///
    /// Exits with 0 if it answers and with 3 if it does not. Only root and the server's own user can see agents, inbox
    /// and calls.
    Status(status::StatusArgs),
    /// Check everything that can be wrong, and suggest fixes.
    ///
    /// Exits with 0 if all is well, with 1 if something needs attention, with 2 if something does not work. Run it as
    /// root: checks that need root are skipped otherwise.
    Doctor(doctor::DoctorArgs),
    /// Print the reference: settings with their defaults, or the tools and resources for clients.
    Describe(describe::DescribeArgs),
    /// Read, change and follow the document that describes the host.
    #[command(mut_arg("json", |json| json.help(JSON_OR_LINES)))]
    State(state::StateArgs),
    /// Print the completions for a shell.
    Completions(completions::CompletionsArgs),
    /// Run commands for the front, as root.
    Helper(helper::HelperArgs),
}

/// Runs the program.
pub fn main() -> ExitCode {
    // Before clap, whose start-up time would slow down every command that the helper runs.
    match std::env::args_os().nth(1) {
        Some(name) if name == reaper::NAME => return reaper::run(),
        Some(name) if name == jail::NAME => return jail::run(),
        Some(name) if name == unit_client::NAME => return unit_client::run(),
        Some(name) if name == manual::NAME => return manual::run(Cli::command()),
        _ => {}
    }
    refuse_huge_pages();
    let parsed = with_whole_paragraphs(Cli::command()).get_matches();
    let parsed = Cli::from_arg_matches(&parsed).unwrap_or_else(|error| error.exit());
    match parsed.command {
        Commands::Try(args) => try_out::run(&args),
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
        Commands::Schedule(args) => schedule::run(&args),
        Commands::Backup(args) => backup::run(&args),
        Commands::Watch(args) => watch::run(&args),
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

    /// Lines and columns of a terminal of common size.
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
        fits(&mut with_whole_paragraphs(Cli::command()));
    }
}
