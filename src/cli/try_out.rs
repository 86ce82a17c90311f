//! `gatewren try`: runs everything on embedded defaults, for a first look and for tests.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;

use super::console::listen::Listen;
use super::console::output::fail;
use super::console::runtime;
use gatewren_base::config::{LogLevel, Preset, Settings};
use gatewren_base::sys::{Secret, files, sanitize};
use gatewren_base::telemetry;
use gatewren_gate::auth::{Agents, bootstrap, make_code};
use gatewren_server::app::{
    EngineSockets, HelperPlan, Server, ServerPlan, build, open_sockets, run as run_server,
    run_stdio,
};

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct TryArgs {
    /// The port, or an address and a port, to listen on; 127.0.0.1:0 picks a free port of this host alone
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    listen: Listen,

    /// Serve only the process that starts this command, on standard input and output
    #[arg(long, conflicts_with_all = ["listen", "json"])]
    stdio: bool,

    /// Where to keep state between runs [default: ~/.local/state/gatewren-try]; with --stdio and without --dir,
    /// the first of gatewren-try, gatewren-try-2 ... that no other gatewren uses
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// What the agent may do: observe, suggest, operate or admin
    #[arg(long, value_name = "PRESET", default_value = "operate")]
    policy: Preset,

    /// The directory of the containers; LXC's own setting if absent
    #[arg(long, value_name = "DIR")]
    lxcpath: Option<PathBuf>,

    /// The socket of Docker's daemon, if it is not /run/docker.sock
    #[arg(long, value_name = "PATH")]
    docker_socket: Option<PathBuf>,

    /// The socket of Podman's service, if it is not /run/podman/podman.sock
    #[arg(long, value_name = "PATH")]
    podman_socket: Option<PathBuf>,

    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,

    /// The minimum level of log lines on standard error: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LogLevel,
}

/// The maximum number of concurrent instances on standard input and output; one more fails.
const MAX_DIRECTORIES: usize = 16;

/// The maximum size of the token file; no token is longer.
const MAX_TOKEN_FILE: usize = 256;

/// Serves until Ctrl-C.
pub fn run(args: &TryArgs) -> ExitCode {
    telemetry::init(args.log);
    let outcome = match runtime::build() {
        Ok(runtime) if args.stdio => {
            let outcome = runtime.block_on(serve_stdio(args));
            runtime::leave(runtime);
            outcome
        }
        Ok(runtime) => runtime.block_on(serve(args)),
        Err(cause) => Err(cause.to_string()),
    };
    outcome.unwrap_or_else(|words| fail(&words))
}

async fn serve(args: &TryArgs) -> Result<ExitCode, String> {
    let directory = directory(args)?;
    let listen = args.listen.address(Ipv4Addr::LOCALHOST);
    let sockets = open_sockets(&[listen]).await.map_err(|e| e.to_string())?;
    let bound = sockets
        .first()
        .and_then(|socket| socket.local_addr().ok())
        .unwrap_or(listen);
    let mut plan = plan(args, &directory);
    plan.settings.listen = vec![bound];
    plan.address = Some(bound);
    let server = build(plan).await.map_err(|e| e.to_string())?;
    let (agent, token) = own_agent(&server, &directory, args.policy).await?;
    let owner_code = owner_code(&server).await?;
    let ca = server.serving.tls.as_ref().and_then(|tls| tls.ca());
    let words = Words {
        url: format!("https://{}/mcp", reachable(bound)),
        agent,
        token,
        owner_code,
        ca: ca.unwrap_or_default(),
        directory,
        policy: args.policy,
    };
    let json = args.json;
    Ok(run_server(server, sockets, move |_| words.print(json)).await)
}

/// Serves the one client that started us. Clients start such commands several times, for each of their windows
/// and at once, and expect each to work. So a directory that is in use is skipped, unless it was named.
async fn serve_stdio(args: &TryArgs) -> Result<ExitCode, String> {
    let first = directory(args)?;
    let mut number = 1;
    let server = loop {
        let directory = numbered_path(&first, number);
        match build(plan(args, &directory)).await {
            Ok(server) => break server,
            Err(error) if error.is_in_use() && args.dir.is_none() && number < MAX_DIRECTORIES => {
                number += 1;
            }
            Err(error) => return Err(error.to_string()),
        }
    };
    let directory = server.in_force.now().state_dir.clone();
    let (agent, token) = own_agent(&server, &directory, args.policy).await?;
    let words = format!(
        "gatewren serves MCP on standard input and output\n  \
         state and vault are kept in {}\n  \
         {}",
        directory.display(),
        agent_words(&agent, args.policy)
    );
    // An error is ignored: the client need not read this.
    let _ = writeln!(io::stderr(), "{words}");
    Ok(run_stdio(server, &token).await)
}

/// The first directory without a suffix, the others with a number.
fn numbered_path(first: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return first.to_owned();
    }
    let mut name = first.as_os_str().to_owned();
    name.push(format!("-{number}"));
    name.into()
}

fn plan(args: &TryArgs, directory: &Path) -> ServerPlan {
    let mut settings = Settings {
        state_dir: directory.to_owned(),
        ..Settings::default()
    };
    settings.lxc.lxcpath.clone_from(&args.lxcpath);
    settings.log.level = args.log;
    ServerPlan {
        settings,
        file: None,
        helper: HelperPlan::Child {
            directory: directory.join("run"),
            policy: None,
            sockets: EngineSockets {
                docker: args.docker_socket.clone(),
                podman: args.podman_socket.clone(),
            },
        },
        address: None,
    }
}

fn directory(args: &TryArgs) -> Result<PathBuf, String> {
    if let Some(directory) = &args.dir {
        return std::path::absolute(directory)
            .map_err(|e| format!("--dir {}: {e}", directory.display()));
    }
    let from = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let base =
        from("XDG_STATE_HOME").or_else(|| from("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("gatewren-try"))
        .ok_or_else(|| "HOME is not set; give a directory for the state with --dir".to_owned())
}

/// "Any address" is not one to connect to; loopback is covered by it.
fn reachable(bound: SocketAddr) -> SocketAddr {
    match bound {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => ([127, 0, 0, 1], v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, v6.port()).into()
        }
        other => other,
    }
}

/// The name and token of this directory's agent with a policy: those of the last run, if the token is still valid.
async fn own_agent(
    server: &Server,
    directory: &Path,
    policy: Preset,
) -> Result<(String, Secret), String> {
    let file = directory.join(format!("token-{policy}"));
    let agents =
        Agents::new(server.vault.clone(), server.in_force.live()).map_err(|e| e.to_string())?;
    if let Ok(bytes) = files::read_bounded(&file, MAX_TOKEN_FILE)
        && let Ok(text) = String::from_utf8(bytes).map(Secret::new)
        && let Ok(agent) = agents.identify(text.expose().trim(), None)
    {
        return Ok((agent.name().to_string(), Secret::new(text.expose().trim())));
    }
    let made = bootstrap(&server.vault, "try", policy).await;
    let (agent, token) = made.map_err(|e| e.to_string())?;
    files::write_private(&file, token.expose().as_bytes()).map_err(|e| e.to_string())?;
    Ok((agent, token))
}

fn agent_words(agent: &str, policy: Preset) -> String {
    format!(
        "the agent \"{}\" has the policy {policy} (change it with --policy observe|suggest|operate|admin)",
        sanitize(agent)
    )
}

/// Creates a code for setting the owner's password, if none is set.
pub async fn owner_code(server: &Server) -> Result<Option<Secret>, String> {
    if server
        .vault
        .owner()
        .password()
        .map_err(|e| e.to_string())?
        .is_some()
    {
        return Ok(None);
    }
    let code = make_code(&server.vault).await;
    code.map(Some).map_err(|e| e.to_string())
}

/// The text or JSON to print when the server is up.
struct Words {
    url: String,
    agent: String,
    token: Secret,
    /// The code for setting the owner's password, if none is set.
    owner_code: Option<Secret>,
    ca: PathBuf,
    directory: PathBuf,
    policy: Preset,
}

impl Words {
    fn print(&self, json: bool) {
        let text = if json { self.json() } else { self.human() };
        let mut out = io::stdout().lock();
        // The process that started us may have closed its end; the server runs all the same.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    }

    /// The fields are an interface: our tests and other programs read this line.
    fn json(&self) -> String {
        json!({
            "url": self.url,
            "agent": self.agent,
            "token": self.token.expose(),
            "owner_code": self.owner_code.as_ref().map(Secret::expose),
            "ca": self.ca,
            "state_db": self.directory.join("state.db"),
            "pid": std::process::id(),
            "policy": self.policy.as_str(),
        })
        .to_string()
    }

    fn human(&self) -> String {
        let Self {
            url,
            directory,
            policy,
            ..
        } = self;
        let (ca, token) = (&self.ca, self.token.expose());
        let (ca, directory) = (ca.display(), directory.display());
        let agent = agent_words(&self.agent, *policy);
        // Claude Code uses BoringSSL, which accepts our certificate only by name.
        let by_name = url.replacen("//127.0.0.1:", "//localhost:", 1);
        let page = url.replace("/mcp", "/owner");
        let code = match &self.owner_code {
            Some(code) => format!("; the code for setting its password is {}", code.expose()),
            None => String::new(),
        };
        format!(
            "\
gatewren serves MCP at {url}
  state, certificate and vault are kept in {directory}
  {agent}
  the owner's page is {page}{code}

Try it:
  curl --cacert '{ca}' {url} \\
    -H 'Authorization: Bearer {token}' -H 'Content-Type: application/json' \\
    -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \\
    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{{\"_meta\":{{\
\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
\"io.modelcontextprotocol/clientCapabilities\":{{}}}}}}}}'

Claude Code:
  NODE_EXTRA_CA_CERTS='{ca}' claude mcp add --transport http gatewren {by_name} \\
    --header 'Authorization: Bearer {token}'

Ctrl-C stops it."
        )
    }
}
