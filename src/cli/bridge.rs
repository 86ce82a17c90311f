//! `gatewren bridge`: connects an MCP client on standard input and output to a gatewren on another machine.

use std::process::ExitCode;

use super::console::output::fail;
use super::console::runtime;
use gatewren_base::telemetry;
use gatewren_bridge::{BridgeArgs, relay};

const EXAMPLES: &str = "\
Examples:
  gatewren bridge --pair ABCD-EFGH-JKMN-PQRS-TVWX-YZ01-2345@box.lan
  gatewren bridge --url https://box.lan:8443/mcp --pin sha256/... --token-file ~/.gatewren-token
  gatewren bridge --url https://box.example.org/mcp --token-file ~/.gatewren-token

Enter this command in the client as an MCP server on standard input and output. `gatewren pair` on the server shows
the code. It is valid once: its token is stored in a private file, where the same command finds it at each later
start.

With a pin, or a code, which contains one, the bridge verifies the server's key: no certificate authority has to be
installed, and nothing is sent to another server. Otherwise it trusts the certificate authorities of this machine.";

/// The arguments of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct BridgeCommand {
    #[command(flatten)]
    args: BridgeArgs,
}

/// Relays messages until the client closes its side.
pub fn run(command: &BridgeCommand) -> ExitCode {
    telemetry::init(command.args.log);
    let runtime = match runtime::small() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let outcome = runtime.block_on(relay(&command.args));
    runtime::leave(runtime);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => fail(&words),
    }
}
