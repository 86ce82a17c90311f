//! The arguments of `gatewren client-config`, and what they ask for.

use std::fs;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf, absolute};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;

use super::super::console::output::fail;
use super::super::console::runtime;
use super::super::console::target::InstanceArgs;
use super::super::owner_action::owner_context;
use super::output::{ClientConfigOutput, after_write, list_clients, one_client};
use super::write::{WritePlan, home};
use gatewren_base::config::{Settings, TlsMode};
use gatewren_base::sys::{Secret, Zeroizing, files, is_root, own_uid};
use gatewren_gate::auth::is_token;
use gatewren_gate::http::CertificateFacts;
use gatewren_gate::owner_actions::{
    AUTHORITY_FILE, Snippet, SnippetConnection, client_words, find_active_agent, name_for_clients,
    reached_at, rotate, sanitize, snippets, token_status,
};
use gatewren_store::vault::{Agent, Vault};

const EXAMPLES: &str = "\
Examples:
  gatewren client-config
  gatewren client-config claude-code
  gatewren client-config codex --host box.lan:8443 >>~/.codex/config.toml
  gatewren client-config cursor --agent claude --new-token
  gatewren client-config curl --token-file - <token
  gatewren client-config claude-code --token-file token --write

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

    /// Edit your settings file of the client on this machine; a copy as it was ends in .before-gatewren
    #[arg(long, requires = "client")]
    write: bool,

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
    let Some(client) = &args.client else {
        return Ok(list_clients(args.json));
    };
    let home = args.write.then(home).transpose()?;
    let authority = Authority::of(args, &settings, home.as_deref());
    let named = args.agent.as_deref();
    let named = named.map(|agent| find_agent(args, &settings, agent));
    let named = named.transpose()?;
    let name = name_for_clients(&settings.names);
    let way = SnippetConnection {
        url: &url,
        name: name.as_deref(),
        token: given.as_ref().map(Secret::expose),
        authority: authority.file.as_deref(),
        fingerprint: authority.fingerprint.as_deref(),
        authority_on_server: &authority.on_server,
        agent: named.as_ref().map(|(_, agent)| agent.name.as_str()),
    };
    let plan = |way: &SnippetConnection<'_>| {
        let pem = authority.pem.as_deref();
        let home = home.as_deref();
        home.map(|home| WritePlan::new(client, way, home, pem))
            .transpose()
    };
    let minted = match &named {
        Some((vault, agent)) if args.new_token => {
            // What cannot be written must not end the old token.
            let token = Some(NO_TOKEN);
            plan(&SnippetConnection { token, ..way })?;
            Some(renew_token(vault, agent)?)
        }
        _ => None,
    };
    let token = minted.as_ref().map(Secret::expose).or(way.token);
    let way = SnippetConnection { token, ..way };
    let snippet = find_snippet(args, client, &way)?;
    let mut output = match plan(&way)? {
        Some(plan) => written(snippet, &way, &plan, args.json)?,
        None => one_client(&snippet, &way, args.json),
    };
    if minted.is_some() {
        output.note("The agent's old token is revoked.");
    }
    Ok(output)
}

/// Stands for a new token while it is tried out whether all files can be written.
const NO_TOKEN: &str = "gw_";

/// The client's snippet. Its commands name the directory of a trial.
fn find_snippet(
    args: &ClientConfigArgs,
    client: &str,
    way: &SnippetConnection<'_>,
) -> Result<Snippet, String> {
    let mut all = snippets(way).into_iter();
    let snippet = all.find(|snippet| snippet.client == client);
    let mut snippet = snippet.ok_or_else(|| format!("unknown client {client:?}"))?;
    for step in &mut snippet.steps {
        step.words = args.place.complete_agent_commands(&step.words);
    }
    Ok(snippet)
}

/// Writes the client's files.
fn written(
    mut snippet: Snippet,
    way: &SnippetConnection<'_>,
    plan: &WritePlan,
    json: bool,
) -> Result<ClientConfigOutput, String> {
    let files = plan.write()?;
    plan.keep_rest(&mut snippet);
    Ok(after_write(&snippet, way, &files, json))
}

/// Whether root would have to become another user to read the state directory, and could then write no file of root.
fn belongs_to_another(args: &ClientConfigArgs, settings: &Settings) -> bool {
    let owner = files::owner(&args.place.directory(settings));
    is_root() && owner.is_ok_and(|owner| owner != own_uid())
}

/// The vault, and the agent in it that was named.
fn find_agent(
    args: &ClientConfigArgs,
    settings: &Settings,
    asked: &str,
) -> Result<(Vault, Agent), String> {
    if args.write && belongs_to_another(args, settings) {
        return Err(format!(
            "--write takes no --agent of a server that runs as another user: get its token with \
             `gatewren agent rotate {}`, and give it with --token-file",
            sanitize(asked)
        ));
    }
    let vault = args.place.vault()?;
    let agent = find_active_agent(&vault, asked)?;
    match token_status(&agent, &settings.spaces).refused {
        None => Ok((vault, agent)),
        Some(why) => Err(format!(
            "{} would be rejected: {why}; fix that with gatewren agent edit",
            sanitize(&agent.name)
        )),
    }
}

/// Gives an agent a new token.
fn renew_token(vault: &Vault, agent: &Agent) -> Result<Secret, String> {
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    runtime.block_on(rotate(&owner_context(vault), agent))
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
    /// The content of that file.
    pem: Option<String>,
}

fn place_of_authority(args: &ClientConfigArgs, settings: &Settings) -> String {
    let file = args.place.directory(settings).join("tls/ca.pem");
    file.display().to_string()
}

impl Authority {
    /// With a home directory, the file is meant to be there, unless another one was named.
    fn of(args: &ClientConfigArgs, settings: &Settings, home: Option<&Path>) -> Self {
        let own = settings.tls.mode == TlsMode::Own;
        let usual = || match home {
            Some(home) => AUTHORITY_FILE.replace("$HOME", &home.to_string_lossy()),
            None => AUTHORITY_FILE.to_owned(),
        };
        let may_read = own && !(args.write && belongs_to_another(args, settings));
        let read = || fs::read_to_string(args.place.file("tls/ca.pem").ok()?).ok();
        let pem = may_read.then(read).flatten();
        let facts = pem.as_ref().map(String::as_bytes);
        let facts = facts.and_then(CertificateFacts::in_pem);
        // The client's files need a path that holds in every folder.
        let named = args.authority.clone().map(|file| match absolute(&file) {
            Ok(path) if args.write => path.display().to_string(),
            _ => file,
        });
        Self {
            file: named.or_else(|| own.then(usual)),
            on_server: place_of_authority(args, settings),
            fingerprint: facts.map(|facts| facts.fingerprint()),
            pem,
        }
    }
}
