//! Parses the command line and runs the subcommand that it names.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use gatewren_base::sys::refuse_huge_pages;

#[cfg(feature = "everything")]
use super::everything;
use super::examples::with_examples;
use super::help::{in_groups, with_whole_paragraphs};
use super::process::{helper, jail, reaper, serve, unit_client};
use super::{
    agent, audit, backup, bridge, cert, check, client_config, completions, describe, doctor, inbox,
    init, job, manual, mdns, metrics, notify, owner, pair, schedule, session, state, status, top,
    try_out, watch,
};

/// The help of `--json` for commands that also print lists.
const JSON_OR_LINES: &str = "Print JSON: one object, or one a line where there may be many";

/// Lets AI assistants look after your home server, within limits that you set.
#[derive(Debug, Parser)]
#[command(name = "gatewren", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Commands,
}

#[derive(Debug, Subcommand)]
enum Commands {
    /// Start a trial server; nothing is installed.
    ///
    /// Creates a local certificate and a first agent.
    Try(try_out::TryArgs),
    /// Set up this host.
    ///
    /// Asks for the names, the port, the certificate, a first agent and everything else that no option sets. Current values are kept, and running it again changes nothing. Run it
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
    Pair(pair::PairArgs),
    /// Connect a stdio-only client to a gatewren elsewhere.
    ///
    /// Needs no settings, no state directory and no privileges. While the server is unreachable, requests wait. If the
    /// server no longer knows the session, a new one is started. A tool call is never sent twice.
    Bridge(bridge::BridgeCommand),
    /// Print what to paste into each client, or edit its settings file.
    ClientConfig(client_config::ClientConfigArgs),
    /// Set the owner's password, and list and end sessions.
    Owner(owner::OwnerArgs),
    /// Decide on what agents propose, or allow it for a time.
    Inbox(inbox::InboxArgs),
    /// List, follow and cancel background jobs.
    Job(job::JobArgs),
    /// List, run, pause and delete scheduled calls.
    Schedule(schedule::ScheduleArgs),
    /// Send notifications to connected clients.
    Session(session::SessionArgs),
    /// List, create, verify, restore and delete backups.
    Backup(backup::BackupArgs),
    /// List, show and delete what agents have the server watch.
    Watch(watch::WatchArgs),
    /// Announce the server on the local network.
    Mdns(mdns::MdnsArgs),
    /// List and test the owner's notification channels.
    Notify(notify::NotifyArgs),
    /// Manage the token that Prometheus reads the metrics with.
    #[command(after_help = metrics::EXAMPLES)]
    Metrics(metrics::MetricsArgs),
    /// Show live which calls run, wait and have ended.
    Top(top::TopArgs),
    /// Read and verify the audit of all calls.
    #[command(mut_arg("json", |json| json.help(JSON_OR_LINES)))]
    Audit(audit::AuditArgs),
    /// Show, renew, trust and replace the server's certificate.
    Cert(cert::CertArgs),
    /// Check the settings, and whether this host fits them.
    Check(check::CheckArgs),
    /// Show whether the server runs, who uses it, and pending changes.
    ///
    /// Exits with 0 if it answers and with 3 if it does not. Only root and the server's own user can see agents, inbox
    /// and calls.
    Status(status::StatusArgs),
    /// Find problems and how to fix them.
    ///
    /// Exits with 0 if all is well, with 1 if something needs attention, with 2 if something does not work. Run it as
    /// root: checks that need root are skipped otherwise.
    Doctor(doctor::DoctorArgs),
    /// Print example settings, tools or resources.
    Describe(describe::DescribeArgs),
    /// Read, change and follow the document that describes the host.
    #[command(mut_arg("json", |json| json.help(JSON_OR_LINES)))]
    State(state::StateArgs),
    /// Print the completions for a shell.
    Completions(completions::CompletionsArgs),
    /// Run commands for the front, as root.
    Helper(helper::HelperArgs),
}

/// Completes the help of all commands.
fn with_help(command: clap::Command) -> clap::Command {
    with_whole_paragraphs(with_examples(in_groups(command)))
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
    let parsed = parse(std::env::args_os().collect()).unwrap_or_else(|error| error.exit());
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
        Commands::Session(args) => session::run(&args),
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

/// Parses the command line. Without a subcommand, a command that has `list` runs it: `gatewren inbox` is `gatewren inbox
/// list`.
fn parse(mut words: Vec<OsString>) -> Result<ArgMatches, clap::Error> {
    const MISSING: [ErrorKind; 2] = [
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::MissingSubcommand,
    ];
    let parsed = with_help(Cli::command()).try_get_matches_from(&words);
    match parsed {
        Err(error) if MISSING.contains(&error.kind()) && words.len() > 1 => {
            words.push("list".into());
            let listed = with_help(Cli::command()).try_get_matches_from(words);
            listed.map_err(|_| error)
        }
        parsed => parsed,
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
    fn a_command_without_its_subcommand_lists_if_it_can() {
        let parse = |line: &str| parse(line.split(' ').map(OsString::from).collect());
        for group in ["agent", "audit", "inbox", "job", "schedule", "watch"] {
            for options in ["", " --json", " --dir /nowhere"] {
                let line = format!("gatewren {group}{options}");
                let parsed = parse(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
                let (_, of_group) = parsed.subcommand().unwrap();
                assert_eq!(of_group.subcommand_name(), Some("list"), "{line}");
            }
        }
        // A command without a list, an unknown subcommand, and an unknown option are errors.
        for line in [
            "gatewren",
            "gatewren cert",
            "gatewren inbox nothing",
            "gatewren inbox --nothing",
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains("Usage: gatewren"), "{line}: {error}");
        }
    }

    #[test]
    fn each_help_fits_a_screen() {
        fits(&mut with_help(Cli::command()));
    }
}
