//! The arguments of the bridge, and what it does with them: `gatewren bridge` and `gatewren-bridge` have the same.

use std::path::PathBuf;
use std::time::Duration;

use super::code::PairingLink;
use super::pairing::{FILE_HELP, pair, usual_file};
use super::request_error::UpstreamError;
use super::run::run;
use super::server::UpstreamServer;
use gatewren_http_client::{AllowedServers, HttpClient, Pin, ServerVerification};
use gatewren_portable::{LogLevel, Secret, read_token};

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct BridgeArgs {
    /// The one-time code of `gatewren pair`, and the server that issued it
    #[arg(long, value_name = "CODE@HOST", conflicts_with_all = ["url", "pin", "token_file"], required_unless_present = "url")]
    pair: Option<PairingLink>,

    #[arg(long, help = FILE_HELP, value_name = "FILE", requires = "pair")]
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
    pub log: LogLevel,
}

/// Relays messages until the client closes its side.
pub async fn relay(args: &BridgeArgs) -> Result<(), String> {
    let server = server(args).await?;
    run(server, tokio::io::stdin(), tokio::io::stdout()).await;
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
        return read_token(file).map_err(|e| e.to_string());
    }
    let token = std::env::var("GATEWREN_TOKEN").ok().map(Secret::new);
    let token = token.filter(|token| !token.expose().trim().is_empty());
    token
        .map(|token| Secret::new(token.expose().trim()))
        .ok_or_else(|| "no token was given: use --token-file, or set GATEWREN_TOKEN".to_owned())
}
