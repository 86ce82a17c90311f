//! `gatewren bridge`: connects an MCP client on standard input and output to a gatewren on another machine.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::console::output::fail;
use super::console::runtime;
use gatewren_base::config::LogLevel;
use gatewren_base::sys::{Secret, read_secret};
use gatewren_base::telemetry;
use gatewren_bridge::{PairingLink, UpstreamError, UpstreamServer, pair, usual_file};
use gatewren_gate::http::{AllowedServers, HttpClient, Pin, ServerVerification};

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
pub struct BridgeArgs {
    /// The one-time code of `gatewren pair`, and the server that issued it
    #[arg(long, value_name = "CODE@HOST", conflicts_with_all = ["url", "pin", "token_file"], required_unless_present = "url")]
    pair: Option<PairingLink>,

    /// Where to store the token of --pair [default: ~/.local/state/gatewren-bridge/HOST_PORT.json]
    #[arg(long, value_name = "FILE", requires = "pair")]
    file: Option<PathBuf>,

    /// The server's address, such as `https://box.lan:8443/mcp`
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// The pin of the server's key, as `gatewren pair` shows it
    #[arg(long, value_name = "PIN", requires = "url")]
    pin: Option<Pin>,

    /// The file with the token; without it, the token is read from the environment variable `GATEWREN_TOKEN`
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,

    /// How long a request waits while the server is unreachable
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    wait: u64,

    /// The minimum level of log lines on standard error: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LogLevel,
}

/// Relays messages until the client closes its side.
pub fn run(args: &BridgeArgs) -> ExitCode {
    telemetry::init(args.log);
    let runtime = match runtime::small() {
        Ok(runtime) => runtime,
        Err(cause) => return fail(&cause),
    };
    let outcome = runtime.block_on(carry(args));
    runtime::leave(runtime);
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => fail(&words),
    }
}

async fn carry(args: &BridgeArgs) -> Result<(), String> {
    let server = server(args).await?;
    gatewren_bridge::run(server, tokio::io::stdin(), tokio::io::stdout()).await;
    Ok(())
}

async fn server(args: &BridgeArgs) -> Result<UpstreamServer, String> {
    let (url, known, token) = match (&args.pair, &args.url) {
        (Some(link), _) => {
            let file = match &args.file {
                Some(file) => file.clone(),
                None => usual_file(link)?,
            };
            let paired = pair(link, &file).await?;
            (
                paired.url,
                ServerVerification::Pin(paired.pin.into()),
                paired.token,
            )
        }
        (None, Some(url)) => {
            let known = args.pin.map_or(ServerVerification::Machine, |pin| {
                ServerVerification::Pin(pin.into())
            });
            (url.clone(), known, token(args)?)
        }
        (None, None) => return Err("name the server with --pair or --url".to_owned()),
    };
    let client = HttpClient::new(&url, AllowedServers::Https, &known);
    let client = client.map_err(|e| format!("--url {url}: {}", UpstreamError::from(e).words))?;
    let wait_limit = Duration::from_secs(args.wait);
    UpstreamServer::new(client, &token, wait_limit).map_err(|failure| failure.words)
}

/// Reads the token; never from the command line, which every user of the machine can read.
fn token(args: &BridgeArgs) -> Result<Secret, String> {
    if let Some(file) = &args.token_file {
        return read_secret(file).map_err(|e| e.to_string());
    }
    let token = std::env::var("GATEWREN_TOKEN").ok().map(Secret::new);
    let token = token.filter(|token| !token.expose().trim().is_empty());
    token
        .map(|token| Secret::new(token.expose().trim()))
        .ok_or_else(|| "no token was given: use --token-file, or set GATEWREN_TOKEN".to_owned())
}
