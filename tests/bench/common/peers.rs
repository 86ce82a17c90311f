//! Servers of others as child processes: small ones made with the SDKs that gatewren is compared with.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Error;
use super::connection::Address;
use super::load::{Asked, Caller, Kind};
use super::machine::Pinning;
use super::servers::Running;
use super::wire::{Question, Wire};

/// A peer that does not answer after this long does not start at all; Python takes a second for its imports.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// Between two attempts to reach it.
const PAUSE: Duration = Duration::from_micros(500);

/// A server that somebody else has made, as `tests/bench/run` describes it.
#[derive(Debug, Clone, Deserialize)]
pub struct Peer {
    /// What the tables call it, with its version.
    pub name: String,
    /// How it is started, but for the port, which stands behind.
    pub command: Vec<PathBuf>,
    /// Where it serves.
    pub path: String,
    /// The revisions of MCP that it is asked in.
    pub wires: Vec<String>,
    /// What it is asked, where that is not [`ECHO`].
    pub echo: Option<String>,
    /// What else can be asked of it.
    #[serde(default)]
    pub can: Vec<Ability>,
}

/// What not every peer can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// It tells its subscribers of a change when its tool `touch` is called.
    Tell,
    /// Its tool `shell` runs a command.
    Shell,
    /// It is a program of machine code, whose instructions can be counted.
    Count,
}

/// A peer that runs.
pub struct Started {
    process: Running,
    /// Where it is.
    pub address: Address,
    path: String,
    /// From its start to its first right answer.
    pub took: Duration,
}

/// What every peer is asked.
pub const ECHO: &str = r#""name":"echo","arguments":{"text":"What may I do here?"}"#;

impl Peer {
    /// Those that this file lists.
    pub fn listed(file: &Path) -> Result<Vec<Self>, Error> {
        let text =
            fs::read_to_string(file).map_err(|cause| format!("{}: {cause}", file.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Whether that can be asked of it.
    pub fn can(&self, ability: Ability) -> bool {
        self.can.contains(&ability)
    }

    /// Whether it speaks this.
    pub fn speaks(&self, wire: Wire) -> bool {
        self.wires.iter().any(|known| known == wire.revision())
    }

    /// What it is asked.
    pub fn question(&self, wire: Wire) -> Question<'_> {
        let params = self.echo.as_deref().unwrap_or(ECHO);
        Question {
            params,
            ..echo(wire)
        }
    }

    /// The same with this text.
    pub fn large(&self, text: &str) -> String {
        let small = self.echo.as_deref().unwrap_or(ECHO);
        small.replace("What may I do here?", text)
    }

    /// Its best wire.
    pub fn wire(&self) -> Wire {
        if self.speaks(Wire::Stateless) {
            Wire::Stateless
        } else {
            Wire::Stateful
        }
    }

    /// Starts it and asks it until it answers rightly.
    pub async fn start(&self, pinning: Pinning) -> Result<Started, Error> {
        let (program, arguments) = self.command.split_first().ok_or("a peer has no command")?;
        let mut command = pinning.server(program);
        command.args(arguments);
        self.start_with(command).await
    }

    /// Starts what the command starts, as the peer.
    pub async fn start_with(&self, mut command: Command) -> Result<Started, Error> {
        let socket = free()?;
        command.arg(socket.port().to_string()).stdout(Stdio::null());
        let began = Instant::now();
        let mut started = Started {
            process: Running::start(command)?,
            address: Address::plain(socket),
            path: self.path.clone(),
            took: Duration::ZERO,
        };
        let echo = self.question(self.wire());
        loop {
            match first(&started, &echo).await {
                Ok(()) => break,
                Err(cause) if began.elapsed() > ANSWERS_WITHIN => {
                    return Err(format!("{}: {cause}", self.name).into());
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        started.took = began.elapsed();
        Ok(started)
    }
}

async fn first(started: &Started, question: &Question<'_>) -> Result<(), Error> {
    Caller::open(&started.asked(question)).await?.once().await?;
    Ok(())
}

impl Started {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Where it serves.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The question, asked of it.
    pub fn asked<'a>(&'a self, question: &'a Question<'a>) -> Asked<'a> {
        Asked {
            address: &self.address,
            pid: self.pid(),
            question,
            kind: Kind::Open(&self.path),
        }
    }
}

/// The one resource of a peer that tells of changes.
pub const DOCUMENT: &str = "bench://document";

/// The call by which it changes.
pub const TOUCH: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("touch"),
    params: r#""name":"touch","arguments":{}"#,
};

/// The call that every peer answers.
pub fn echo(wire: Wire) -> Question<'static> {
    Question {
        wire,
        method: "tools/call",
        name: Some("echo"),
        params: ECHO,
    }
}

/// A port that nobody has at this moment.
pub fn free() -> Result<SocketAddr, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}
