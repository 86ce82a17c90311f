//! `gatewren-bridge`: the bridge as a program of its own, for a client's machine without gatewren.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use gatewren_bridge::{BridgeArgs, relay};
use gatewren_portable::LogLevel;

const EXAMPLES: &str = "\
Examples:
  gatewren-bridge --pair ABCD-EFGH-JKMN-PQRS-TVWX-YZ01-2345@box.lan
  gatewren-bridge --url https://box.lan:8443/mcp --pin sha256/... --token-file token.txt
  gatewren-bridge --url https://box.example.org/mcp --token-file token.txt

Enter this command in the client as an MCP server on standard input and output. `gatewren pair` on the server shows
the code. It is valid once: its token is stored in a private file, where the same command finds it at each later
start.

With a pin, or a code, which contains one, the bridge verifies the server's key: no certificate authority has to be
installed, and nothing is sent to another server. Otherwise it trusts the certificate authorities of this machine.";

/// Connects an MCP client on standard input and output to a gatewren on another machine.
#[derive(Debug, Parser)]
#[command(name = "gatewren-bridge", version, after_help = EXAMPLES)]
struct Program {
    #[command(flatten)]
    args: BridgeArgs,
}

fn main() -> ExitCode {
    let Program { args } = Program::parse();
    log_to_stderr(args.log);
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            // If even this write fails, there is no other way to report it.
            let _ = writeln!(io::stderr(), "gatewren-bridge: {words}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &BridgeArgs) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|cause| cause.to_string())?;
    let outcome = runtime.block_on(relay(args));
    // Reads of standard input cannot be interrupted.
    runtime.shutdown_background();
    outcome
}

/// Logs our own lines from `level` up, those of libraries only from warnings up.
fn log_to_stderr(level: LogLevel) {
    let Ok(ours) = level.to_string().parse::<tracing::Level>() else {
        return;
    };
    let filter = Targets::new()
        .with_default(ours.min(tracing::Level::WARN))
        .with_target("gatewren", ours);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time();
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
}
