//! The arguments of `gatewren client-config`, and what they ask for.

use std::fs;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;

use super::super::console::output::fail;
use super::super::console::runtime;
use super::super::console::target::InstanceArgs;
use super::super::owner_action::owner_context;
use super::output::{ClientConfigOutput, list_clients, one_client};
use gatewren_base::config::{Settings, TlsMode};
use gatewren_base::sys::{Secret, Zeroizing};
use gatewren_gate::auth::is_token;
use gatewren_gate::http::CertificateFacts;
use gatewren_gate::owner_actions::{
    AUTHORITY_FILE, SnippetConnection, client_words, find_active_agent, reached_at, rotate,
    sanitize, snippets, token_status,
};
use gatewren_store::vault::Agent;

const EXAMPLES: &str = "\
Examples:
  gatewren client-config
  gatewren client-config claude-code
  gatewren client-config codex --host box.lan:8443 >>~/.codex/config.toml
  gatewren client-config cursor --agent claude --new-token
  gatewren client-config curl --token-file - <token

The configuration is written to standard output, and the steps around it to standard error.
Tokens are stored as hashes and cannot be shown again. Without a token, the configuration reads the
variable GATEWREN_TOKEN or asks; --new-token gives the agent a new one, and --token-file reads yours.";

/// The maximum size of a token file, in bytes.
const MAX_TOKEN_FILE: u64 = 4096;

/// The default address of `try`.
const OF_TRY: &str = "localhost:8443";

/// The arguments of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ClientConfigArgs {
    /// The client; without it, all clients are listed
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(client_words()))]
    client: Option<String>,

    /// The agent that the client authenticates as: its name, or its id as `agent list` shows it
    #[arg(long, value_name = "AGENT", requires = "client")]
    agent: Option<String>,

    /// Give the agent a new token and put it into the text; the old one is revoked at once
    #[arg(long, requires = "agent", conflicts_with = "token_file")]
    new_token: bool,

    /// Put the token in this file into the text; - reads standard input
    #[arg(long, value_name = "FILE", requires = "client")]
    token_file: Option<PathBuf>,

    /// The name or address by which the client reaches this host, with its port if it differs from the settings
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// The path of the authority's file on the client's machine [default: $HOME/gatewren-ca.pem]
    #[arg(long, value_name = "FILE")]
    authority: Option<String>,

    #[command(flatten)]
    place: InstanceArgs,

    /// Print one JSON object instead
    #[arg(long)]
    json: bool,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &ClientConfigArgs) -> ExitCode {
    match act(args) {
        Ok(output) => output.print(),
        Err(words) => fail(&words),
    }
}

/// Returns an address as a client on this host can reach it: some clients cannot connect by address.
fn name_of(bound: &SocketAddr) -> String {
    if bound.ip().is_loopback() || bound.ip().is_unspecified() {
        format!("localhost:{}", bound.port())
    } else {
        bound.to_string()
    }
}

fn act(args: &ClientConfigArgs) -> Result<ClientConfigOutput, String> {
    // The order matters: root's own files are read before root privileges are dropped.
    let settings = args.place.settings_as_served()?;
    let given = args.token_file.as_deref().map(token).transpose()?;
    let host = match &args.host {
        Some(host) => complete_address(host, &settings)?,
        None if args.place.is_a_directory() => {
            let bound = settings.listen.first();
            bound.map_or_else(|| OF_TRY.to_owned(), name_of)
        }
        None => reached_at(&settings),
    };
    let url = format!("https://{host}/mcp");
    let authority = Authority::of(args, &settings);
    let Some(client) = &args.client else {
        return Ok(list_clients(args.json));
    };
    let (agent, minted) = find_agent(args, &settings)?;
    let token = minted.as_ref().or(given.as_ref());
    let way = SnippetConnection {
        url: &url,
        token: token.map(Secret::expose),
        authority: authority.file.as_deref(),
        fingerprint: authority.fingerprint.as_deref(),
        authority_on_server: &authority.on_server,
        agent: agent.as_ref().map(|agent| agent.name.as_str()),
    };
    let mut all = snippets(&way).into_iter();
    let snippet = all.find(|snippet| snippet.client == client);
    let snippet = snippet.ok_or_else(|| format!("unknown client {client:?}"))?;
    let mut output = one_client(&snippet, &way, args.json);
    if args.new_token {
        output.note("The agent's old token is revoked.");
    }
    Ok(output)
}

/// The agent that was named, and its new token if one was requested.
fn find_agent(
    args: &ClientConfigArgs,
    settings: &Settings,
) -> Result<(Option<Agent>, Option<Secret>), String> {
    let Some(asked) = &args.agent else {
        return Ok((None, None));
    };
    let vault = args.place.vault()?;
    let agent = find_active_agent(&vault, asked)?;
    if let Some(why) = token_status(&agent, &settings.spaces).refused {
        return Err(format!(
            "{} would be rejected: {why}; fix that with gatewren agent edit",
            sanitize(&agent.name)
        ));
    }
    if !args.new_token {
        return Ok((Some(agent), None));
    }
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    let token = runtime.block_on(rotate(&owner_context(&vault), &agent))?;
    Ok((Some(agent), Some(token)))
}

/// Reads the token in a file, or on standard input.
fn token(file: &Path) -> Result<Secret, String> {
    let mut text = Zeroizing::new(String::new());
    let read = if file == Path::new("-") {
        io::stdin()
            .lock()
            .take(MAX_TOKEN_FILE)
            .read_to_string(&mut text)
    } else {
        fs::File::open(file).and_then(|file| file.take(MAX_TOKEN_FILE).read_to_string(&mut text))
    };
    read.map_err(|cause| format!("cannot read the token in {}: {cause}", file.display()))?;
    if !is_token(text.trim()) {
        // The text is not repeated in the error: it may be another secret.
        return Err(format!(
            "{} does not contain an agent's token: tokens begin with gw_, and `gatewren agent add` shows one",
            file.display()
        ));
    }
    Ok(Secret::new(text.trim()))
}

/// A host with its port; the default is the port of the settings.
fn complete_address(asked: &str, settings: &Settings) -> Result<String, String> {
    let authority: Option<hyper::http::uri::Authority> = asked.parse().ok();
    let authority = authority.filter(|known| !known.as_str().contains('@'));
    let authority = authority.ok_or_else(|| {
        format!(
            "\"{}\" is not a host: give a name or an address, with :PORT if it differs from the settings",
            sanitize(asked)
        )
    })?;
    if authority.port_u16().is_some() {
        return Ok(authority.to_string());
    }
    let port = settings.listen.first().map_or(8443, SocketAddr::port);
    Ok(format!("{}:{port}", authority.host()))
}

/// The authority that a client has to trust.
struct Authority {
    /// The path of its file on the client's machine; `None` if another authority signs our certificate.
    file: Option<String>,
    /// The path of its file on the server.
    on_server: String,
    /// The fingerprint of that file, if this user may read it.
    fingerprint: Option<String>,
}

fn place_of_authority(args: &ClientConfigArgs, settings: &Settings) -> String {
    let file = args.place.directory(settings).join("tls/ca.pem");
    file.display().to_string()
}

impl Authority {
    fn of(args: &ClientConfigArgs, settings: &Settings) -> Self {
        let own = settings.tls.mode == TlsMode::Own;
        let usual = || own.then(|| AUTHORITY_FILE.to_owned());
        let pem = || fs::read(args.place.file("tls/ca.pem").ok()?).ok();
        Self {
            file: args.authority.clone().or_else(usual),
            on_server: place_of_authority(args, settings),
            fingerprint: own
                .then(pem)
                .flatten()
                .and_then(|pem| Some(CertificateFacts::in_pem(&pem)?.fingerprint())),
        }
    }
}
