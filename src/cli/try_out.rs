//! `gatewren try`: runs everything on embedded defaults, for a first look and for tests.

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::console::listen::Listen;
use super::console::output::fail;
use super::console::runtime;
use super::try_words::{TrialWords, token_file};
use gatewren_base::config::{LogLevel, Preset, Settings, WorkerSettings};
use gatewren_base::sys::{Secret, files, sanitize};
use gatewren_base::telemetry;
use gatewren_gate::auth::{Agents, bootstrap, make_code};
use gatewren_server::app::{
    EngineSockets, HelperPlan, Server, ServerPlan, build, open_sockets, run as run_server,
    run_stdio,
};

/// The arguments of the command.
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub struct TryArgs {
    /// The port, or an address and a port, to listen on; 127.0.0.1:0 picks a free port of this host alone
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    listen: Listen,

    /// Serve only the process that starts this command, on standard input and output
    #[arg(long, conflicts_with_all = ["listen", "json"])]
    stdio: bool,

    /// Serve an invented server, to look at every page; nothing of this host is shown or changed
    #[arg(long, conflicts_with_all = ["stdio", "lxcpath", "docker_socket", "podman_socket"])]
    demo: bool,

    /// Where to keep state between runs [default: ~/.local/state/gatewren-try, with --demo gatewren-demo, which each
    /// start fills again]; with --stdio and without --dir,
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

    /// Switch the background work off: no observer, notifications, sweeper, schedules or watches
    #[arg(long)]
    no_workers: bool,

    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,

    /// The minimum level of log lines on standard error: error, warn, info, debug or trace [default: warn on a terminal,
    /// else info]
    #[arg(long, value_name = "LEVEL")]
    log: Option<LogLevel>,
}

impl TryArgs {
    /// The level of the log. A person at a terminal reads the text for people, in which events of the start look like
    /// errors.
    fn level(&self) -> LogLevel {
        let usual = if io::stderr().is_terminal() {
            LogLevel::Warn
        } else {
            LogLevel::Info
        };
        self.log.unwrap_or(usual)
    }
}

/// The maximum number of concurrent instances on standard input and output; one more fails.
const MAX_DIRECTORIES: usize = 16;

/// The maximum size of the token file; no token is longer.
const MAX_TOKEN_FILE: usize = 256;

/// Serves until Ctrl-C.
pub fn run(args: &TryArgs) -> ExitCode {
    telemetry::init(args.level());
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
    let words = TrialWords {
        url: format!("https://{}/mcp", reachable(bound)),
        agent,
        token,
        owner_code,
        ca: ca.unwrap_or_default(),
        directory,
        policy: args.policy,
        named: args.dir.is_some(),
        has_engine: args.docker_socket.is_some() || args.podman_socket.is_some(),
        is_demo: args.demo,
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
    settings.log.level = args.level();
    if args.no_workers {
        settings.workers = WorkerSettings::NONE;
    }
    let socket = directory.join("run");
    let helper = if args.demo {
        HelperPlan::Demo { directory: socket }
    } else {
        HelperPlan::Child {
            directory: socket,
            policy: None,
            sockets: EngineSockets {
                docker: args.docker_socket.clone(),
                podman: args.podman_socket.clone(),
            },
        }
    };
    ServerPlan {
        settings,
        file: None,
        helper,
        address: None,
        instance: None,
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
    let name = if args.demo {
        "gatewren-demo"
    } else {
        "gatewren-try"
    };
    base.map(|base| base.join(name))
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
    let file = token_file(directory, policy);
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
