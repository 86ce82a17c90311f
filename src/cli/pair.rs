//! `gatewren pair`: prints a one-time code that a client exchanges for its own token.

use std::net::SocketAddr;
use std::process::ExitCode;

use serde_json::json;

use super::agent::NewAgentArgs;
use super::console::output::conclude;
use super::console::runtime;
use super::console::target::InstanceArgs;
use super::owner_action::owner_context;
use gatewren_base::config::Settings;
use gatewren_base::sys::{host_name, rfc3339};
use gatewren_bridge::{PairingCode, with_port};
use gatewren_gate::http::{Pin, TlsServer};
use gatewren_gate::owner_actions::{pair, sanitize, valid_until};
use gatewren_server::app::certificate;

/// The host in codes of a server that only this machine reaches.
const LOCALHOST: &str = "localhost";

const EXAMPLES: &str = "\
Examples:
  gatewren pair claude --policy operate
  gatewren pair laptop --policy observe --space media --expires 30d --host box.lan

On the client's machine, configure the MCP client to run the command that is shown. The code is valid once, for 5
minutes. The agent is created when the code is used, and the audit records it. The code contains a secret and the
beginning of the pin of this server's key: the client sends the secret only to the server with that key.

If the server listens on 127.0.0.1 only, only clients on this machine reach it, and the code names localhost.";

/// The arguments of the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PairArgs {
    #[command(flatten)]
    agent: NewAgentArgs,

    /// The name or address by which the client reaches this host, with its port if it differs from the settings
    /// [default: the first of the names]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    #[command(flatten)]
    place: InstanceArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command; exits with 1 if it failed.
pub fn run(args: &PairArgs) -> ExitCode {
    conclude(act(args))
}

fn act(args: &PairArgs) -> Result<String, String> {
    // The order matters: root's own files are read before root privileges are dropped.
    let mut settings = args.place.settings_as_served()?;
    settings.state_dir = args.place.directory(&settings);
    let pin = certificate(&settings).map_err(|e| e.to_string())?;
    let pin = TlsServer::pin_of(&pin).map_err(|e| e.to_string())?;
    let local = only_here(&settings).filter(|_| args.host.is_none());
    let named = local.map(|_| LOCALHOST).or(args.host.as_deref());
    let host = host(named, &settings)?;
    let vault = args.place.vault()?;
    let tools = vault.offer().tools().map_err(|e| e.to_string())?;
    let admission = args.agent.admission(&settings.spaces, &tools)?;
    let name = sanitize(&admission.name);
    let expires_ms = admission.expires_ms;
    let runtime = runtime::build().map_err(|e| e.to_string())?;
    let paired = runtime.block_on(pair(&owner_context(&vault), admission));
    let (secret, until_ms) = paired.map_err(|words| args.place.complete_hint(words))?;
    let code = PairingCode::new(&secret, &pin).ok_or("cannot create the code")?;
    let shown = Shown {
        name,
        code: format!("{}@{host}", code.grouped_letters()),
        link: link(&host, &pin, code.letters()),
        until: rfc3339(until_ms),
        expires_ms,
        pin,
        host,
        only_here: local.map(|listen| remedy(&args.place, listen)),
    };
    if args.json {
        return Ok(shown.json());
    }
    Ok(shown.words())
}

/// Returns where the server listens, if only clients on this machine reach it.
fn only_here(settings: &Settings) -> Option<SocketAddr> {
    let mut all = settings.listen.iter().copied();
    let first = all.next()?;
    let is_local = first.ip().is_loopback() && all.all(|listen| listen.ip().is_loopback());
    is_local.then_some(first)
}

/// What to do for clients on other machines.
fn remedy(place: &InstanceArgs, listen: SocketAddr) -> String {
    let (port, options) = (listen.port(), place.options());
    let command = if place.is_a_directory() {
        format!("gatewren try --listen 0.0.0.0:{port}{options}")
    } else {
        format!("gatewren init --listen {port}{options}")
    };
    format!(
        "The server listens on {listen}: only clients on this machine reach it. For others, stop it and run: \
         {command}\nIf something forwards a port to it, name that with --host."
    )
}

/// The host and port that the client connects to.
fn host(named: Option<&str>, settings: &Settings) -> Result<String, String> {
    let port = settings.listen.first().map_or(8443, SocketAddr::port);
    let host = match named {
        Some(named) => named.to_owned(),
        None => settings.names.first().cloned().or_else(host_name).ok_or(
            "this host has no name; set --host to the name or address by which the client reaches it",
        )?,
    };
    let bare = host.parse::<std::net::Ipv6Addr>().is_ok();
    let has_port = !bare
        && host
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.ends_with(']'));
    let host = match (bare, has_port) {
        (true, _) => format!("[{host}]:{port}"),
        (false, false) => format!("{host}:{port}"),
        (false, true) => host,
    };
    with_port(&host).ok_or_else(|| format!("--host {host} is neither a name nor an address"))
}

fn link(host: &str, pin: &Pin, letters: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("pin", &pin.to_string());
    query.append_pair("code", letters);
    format!("gatewren://{host}/?{}", query.finish())
}

/// The output, which is shown once.
struct Shown {
    name: String,
    code: String,
    link: String,
    until: String,
    /// When the token that the client gets expires.
    expires_ms: Option<u64>,
    pin: Pin,
    host: String,
    /// What to do for clients on other machines, if only clients on this one reach the server.
    only_here: Option<String>,
}

impl Shown {
    fn json(&self) -> String {
        json!({
            "name": self.name, "code": self.code, "link": self.link, "until": self.until,
            "expires": self.expires_ms.map(rfc3339),
            "pin": self.pin.to_string(), "only_this_box": self.only_here.is_some(), "url": format!("https://{}/mcp", self.host),
            "command": ["gatewren", "bridge", "--pair", self.code],
        })
        .to_string()
    }

    fn words(&self) -> String {
        let Self {
            name,
            code,
            until,
            pin,
            ..
        } = self;
        let valid = valid_until(self.expires_ms);
        let (whose, remedy) = match &self.only_here {
            Some(remedy) => ("this", format!("\n\n{remedy}")),
            None => ("the client's", String::new()),
        };
        format!(
            "The code for {name}, valid once until {until}:\n  {code}\nThe client gets a token {valid}.\n\nOn {whose} \
             machine, as the command of an MCP server:\n  gatewren bridge --pair {code}\nwithout gatewren, as on \
             Windows and macOS:\n  gatewren-bridge --pair {code}\n\nThe pin of this server is {pin}{remedy}"
        )
    }
}
