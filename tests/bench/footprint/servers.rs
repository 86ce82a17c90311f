//! The two servers: how each is started, and its call.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::common::Error;
use crate::common::args::Common;
use crate::common::connection::Address;
use crate::common::load::{Asked, Caller, Kind};
use crate::common::machine::Pinning;
use crate::common::peers::free;
use crate::common::servers::{Home, Running};
use crate::common::wire::{Question, Wire};

/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_micros(500);

/// The time limit of a server's start.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);

const WHOAMI: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("whoami"),
    params: r#""name":"whoami","arguments":{}"#,
};

const ECHO: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("echo"),
    params: r#""name":"echo","arguments":{"text":"What may I do here?"}"#,
};

/// A server that can be started.
pub enum Server {
    /// gatewren, in the directory of an earlier start.
    Gatewren(Home),
    /// The server with rmcp.
    Peer(PathBuf),
}

/// A started server that has responded.
pub struct Started {
    /// Its process.
    pub process: Running,
    /// Its address.
    address: Address,
    /// From its start to its first correct reply.
    pub took: Duration,
}

impl Server {
    /// Returns both servers.
    pub fn both(args: &Args) -> Result<[Self; 2], Error> {
        let peer = args.peer.clone().map_or_else(build_peer, Ok)?;
        Ok([Self::Gatewren(Home::new(&args.common)?), Self::Peer(peer)])
    }

    /// Returns its name in the report.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Gatewren(_) => "gatewren",
            Self::Peer(_) => "rmcp's server",
        }
    }

    /// Returns the path of its binary.
    pub fn binary<'a>(&'a self, args: &'a Common) -> &'a Path {
        match self {
            Self::Gatewren(_) => &args.binary,
            Self::Peer(binary) => binary,
        }
    }

    /// Starts it and calls it until a reply is correct.
    pub async fn start(&self, args: &Common, pinning: Pinning) -> Result<Started, Error> {
        let began = Instant::now();
        let (process, address) = match self {
            Self::Gatewren(home) => (home.start(args, pinning)?, home.address.clone()),
            Self::Peer(binary) => {
                let socket = free()?;
                let mut command = pinning.server(binary);
                command.arg(socket.port().to_string());
                (Running::start(command)?, Address::plain(socket))
            }
        };
        let mut started = Started {
            process,
            address,
            took: Duration::ZERO,
        };
        let mut caller = loop {
            match self.connect(&started).await {
                Ok(caller) => break caller,
                Err(cause) if began.elapsed() > ANSWERS_WITHIN => return Err(cause),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        caller.once().await?;
        started.took = began.elapsed();
        Ok(started)
    }

    /// Opens a new connection to it.
    pub async fn connect(&self, started: &Started) -> Result<Caller, Error> {
        let asked = Asked {
            address: &started.address,
            pid: started.process.pid(),
            question: self.question(),
            kind: self.kind(),
        };
        Caller::open(&asked).await
    }

    fn question(&self) -> &'static Question<'static> {
        match self {
            Self::Gatewren(_) => &WHOAMI,
            Self::Peer(_) => &ECHO,
        }
    }

    fn kind(&self) -> Kind<'_> {
        match self {
            Self::Gatewren(home) => Kind::Mcp(&home.token),
            Self::Peer(_) => Kind::Open("/mcp"),
        }
    }
}

/// Builds the server with rmcp; its crates come from crates.io in the versions of its own lock file.
fn build_peer() -> Result<PathBuf, Error> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = root.join("target/bench-peers");
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--quiet"])
        .args(["--package", "gatewren-bench-rmcp"])
        .arg("--manifest-path")
        .arg(root.join("tests/bench/peers/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // The settings in its own folder decide the target and the build options.
        .current_dir(root.join("tests/bench/peers"))
        .env_remove("CARGO_BUILD_TARGET")
        .status()?;
    if !built.success() {
        return Err("rmcp's server cannot be built; name a built one with --peer".into());
    }
    let name = "release/gatewren-bench-rmcp";
    let places = [target.join(name), target.join(host_target()?).join(name)];
    let found = places.into_iter().find(|place| place.is_file());
    found.ok_or_else(|| "the build of rmcp's server left no file".into())
}

/// Returns the machine's own target, which is the name of the build folder in the project's settings.
fn host_target() -> Result<String, Error> {
    let said = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(said.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host
        .ok_or("rustc does not say for which machine it builds")?
        .to_owned())
}
