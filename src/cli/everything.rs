//! `gatewren everything`: reference fixtures, for testing MCP clients and for the conformance suite.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::json;

use super::console::runtime;
use gatewren_base::config::LogLevel;
use gatewren_base::sys::{Secret, files, random_bytes};
use gatewren_base::telemetry;
use gatewren_gate::http::bind;
use gatewren_server::app::{FixturePlan, FixtureServer, run_fixtures, run_fixtures_stdio};

/// The arguments of the command.
#[derive(Debug, clap::Args)]
pub struct EverythingArgs {
    /// How clients connect: stdio by default, and streamableHttp with --listen, --json, --tls or --token
    #[arg(value_enum)]
    transport: Option<Transport>,

    /// The address to listen on, 127.0.0.1:0 by default; port 0 picks a free one. Anything but loopback needs --tls and
    /// --token
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Print one JSON object on standard output instead of text
    #[arg(long)]
    json: bool,

    /// Serve HTTPS, with a certificate signed by our own authority
    #[arg(long)]
    tls: bool,

    /// Accept only clients that send this token: Authorization: Bearer TOKEN
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,

    /// Where to keep the authority's files between runs; a temporary directory if absent
    #[arg(long, value_name = "DIR", requires = "tls")]
    dir: Option<PathBuf>,

    /// The minimum level of log lines on standard error: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    log: LogLevel,
}

/// How clients connect; the names are those of the reference server of the MCP project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Transport {
    #[value(name = "streamableHttp")]
    StreamableHttp,
    #[value(name = "stdio")]
    Stdio,
    #[value(name = "sse")]
    Sse,
}

impl EverythingArgs {
    /// The MCP project's Everything server, too, serves stdio without an argument.
    fn transport(&self) -> Transport {
        let is_network = self.listen.is_some() || self.json || self.tls || self.token.is_some();
        let default = if is_network {
            Transport::StreamableHttp
        } else {
            Transport::Stdio
        };
        self.transport.unwrap_or(default)
    }

    fn listen(&self) -> SocketAddr {
        self.listen
            .unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }
}

/// Exit code for invalid arguments, the same as clap's.
const BAD_USAGE: u8 = 2;

/// Serves until SIGTERM or Ctrl-C.
pub fn run(args: EverythingArgs) -> ExitCode {
    telemetry::init(args.log);
    if let Err(words) = check(&args) {
        return fail(words, ExitCode::from(BAD_USAGE));
    }
    let outcome = match runtime::build() {
        Ok(runtime) if args.transport() == Transport::Stdio => {
            let outcome = runtime.block_on(serve_stdio());
            runtime::leave(runtime);
            outcome
        }
        Ok(runtime) => runtime.block_on(serve(args)),
        Err(cause) => Err(cause.to_string()),
    };
    outcome.unwrap_or_else(|words| fail(&words, ExitCode::FAILURE))
}

fn fail(words: &str, code: ExitCode) -> ExitCode {
    let _ = writeln!(io::stderr(), "gatewren: {words}");
    code
}

fn check(args: &EverythingArgs) -> Result<(), &'static str> {
    if args.transport() == Transport::Stdio {
        return check_stdio(args);
    }
    if args
        .token
        .as_deref()
        .is_some_and(|token| token.trim().is_empty())
    {
        return Err("--token is empty; give some text");
    }
    if !args.listen().ip().is_loopback() && (!args.tls || args.token.is_none()) {
        return Err(
            "fixtures that other machines can reach need both --tls and --token; or listen on 127.0.0.1",
        );
    }
    Ok(())
}

/// Standard output carries only messages, and the client is the process that started us, so it is not
/// authenticated.
fn check_stdio(args: &EverythingArgs) -> Result<(), &'static str> {
    if args.json || args.tls || args.token.is_some() {
        return Err(
            "stdio does not accept --json, --tls and --token: the process that starts it is the client",
        );
    }
    Ok(())
}

async fn serve_stdio() -> Result<ExitCode, String> {
    let plan = FixturePlan {
        address: None,
        http_sse: false,
        tls: None,
        token: None,
    };
    let fixtures = FixtureServer::build(plan).map_err(|e| e.to_string())?;
    Ok(run_fixtures_stdio(fixtures).await)
}

async fn serve(args: EverythingArgs) -> Result<ExitCode, String> {
    // Its own socket, never an inherited one: that could be open to other machines.
    let (listen, http_sse) = (args.listen(), args.transport() == Transport::Sse);
    let socket = bind(listen).await.map_err(|e| e.to_string())?;
    let bound = socket.local_addr().unwrap_or(listen);
    let directory = args.tls.then(|| Directory::make(args.dir)).transpose()?;
    let path = directory.as_ref().map(|directory| directory.path.clone());
    let plan = FixturePlan {
        address: Some(bound),
        http_sse,
        tls: path.clone(),
        token: args.token.map(|token| Secret::new(token.trim())),
    };
    let fixtures = FixtureServer::build(plan).map_err(|e| e.to_string())?;
    let announce = |fixtures: &FixtureServer| print(&fixtures.url, path.as_deref(), args.json);
    Ok(run_fixtures(fixtures, vec![socket], announce).await)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|e| format!("--dir {}: {e}", path.display()))
}

/// A unique path in the directory for temporary files.
fn fresh() -> Result<PathBuf, String> {
    let name = u64::from_ne_bytes(random_bytes().map_err(|e| e.to_string())?);
    Ok(std::env::temp_dir().join(format!("gatewren-everything-{name:016x}")))
}

/// The directory of the authority's files; removed at the end if it is temporary.
struct Directory {
    path: PathBuf,
    ours: bool,
}

impl Directory {
    fn make(named: Option<PathBuf>) -> Result<Self, String> {
        if let Some(path) = named {
            let path = absolute(&path)?;
            return Ok(Self { path, ours: false });
        }
        let path = fresh()?;
        files::private_dir(&path).map_err(|e| e.to_string())?;
        Ok(Self { path, ours: true })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.ours {
            // An error is ignored: the key that stays behind is trusted by no client any more.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn print(url: &str, directory: Option<&Path>, as_json: bool) {
    let ca = directory.map(|directory| directory.join("tls").join("ca.pem"));
    let text = match (as_json, &ca) {
        (true, None) => json!({ "url": url }).to_string(),
        (true, Some(ca)) => json!({ "url": url, "ca": ca }).to_string(),
        (false, None) => format!("gatewren serves its fixtures at {url}\nCtrl-C stops it."),
        (false, Some(ca)) => format!(
            "gatewren serves its fixtures at {url}\n  \
             the certificate is signed by {}\nCtrl-C stops it.",
            ca.display()
        ),
    };
    let mut out = io::stdout().lock();
    // The process that started us may have closed its end; the server runs all the same.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
