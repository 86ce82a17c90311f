//! Other servers as child processes: small ones made with the SDKs that gatewren is compared with.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::Error;
use super::connection::Address;
use super::guard::Guard;
use super::load::{Asked, Caller, Kind};
use super::machine::Pinning;
use super::servers::{Gatewren, Running};
use super::wire::{Question, Wire};

/// The time limit of a peer's start; Python needs a second for its imports.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_micros(500);

/// A server made with another SDK, as `tests/bench/run` describes it.
#[derive(Debug, Clone, Deserialize)]
pub struct Peer {
    /// Its name in the tables, with its version.
    pub name: String,
    /// The command that starts it, without the port, which is appended.
    pub command: Vec<PathBuf>,
    /// The path of its endpoint.
    pub path: String,
    /// The revisions of MCP to measure.
    pub wires: Vec<String>,
    /// The call to measure, if it is not [`ECHO`].
    pub echo: Option<String>,
    /// Its further abilities.
    #[serde(default)]
    pub can: Vec<Ability>,
}

/// An ability that not every peer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ability {
    /// It notifies its subscribers of a change when its tool `touch` is called.
    Tell,
    /// Its tool `shell` runs a command.
    Shell,
    /// It is a native program, so its instructions can be counted.
    Count,
    /// It has a second form, behind TLS, a token and a table of calls.
    Guard,
}

/// A running peer.
pub struct Started {
    process: Running,
    /// Its address.
    pub address: Address,
    path: String,
    guard: Option<Guard>,
    /// From its start to its first correct reply.
    pub took: Duration,
}

/// The call of every peer.
pub const ECHO: &str = r#""name":"echo","arguments":{"text":"What may I do here?"}"#;

impl Peer {
    /// Returns the peers in this file.
    pub fn listed(file: &Path) -> Result<Vec<Self>, Error> {
        let text =
            fs::read_to_string(file).map_err(|cause| format!("{}: {cause}", file.display()))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns whether it has this ability.
    pub fn can(&self, ability: Ability) -> bool {
        self.can.contains(&ability)
    }

    /// Returns whether it supports this wire.
    pub fn speaks(&self, wire: Wire) -> bool {
        self.wires.iter().any(|known| known == wire.revision())
    }

    /// Returns its question.
    pub fn question(&self, wire: Wire) -> Question<'_> {
        let params = self.echo.as_deref().unwrap_or(ECHO);
        Question {
            params,
            ..echo(wire)
        }
    }

    /// Returns the parameters of its call with this text.
    pub fn large(&self, text: &str) -> String {
        let small = self.echo.as_deref().unwrap_or(ECHO);
        small.replace("What may I do here?", text)
    }

    /// Returns its best wire.
    pub fn wire(&self) -> Wire {
        if self.speaks(Wire::Stateless) {
            Wire::Stateless
        } else {
            Wire::Stateful
        }
    }

    /// Starts it and calls it until a reply is correct.
    pub async fn start(&self, pinning: Pinning) -> Result<Started, Error> {
        self.start_with(self.command(pinning)?).await
    }

    fn command(&self, pinning: Pinning) -> Result<Command, Error> {
        let (program, arguments) = self.command.split_first().ok_or("a peer has no command")?;
        let mut command = pinning.server(program);
        command.args(arguments);
        Ok(command)
    }

    /// Starts it with this command.
    pub async fn start_with(&self, mut command: Command) -> Result<Started, Error> {
        let socket = free()?;
        command.arg(socket.port().to_string());
        self.started(command, Address::plain(socket), None).await
    }

    /// Starts its guarded form with gatewren's certificate and token, and checks that the guard is there.
    pub async fn start_guarded(&self, ours: &Gatewren, pinning: Pinning) -> Result<Started, Error> {
        let (socket, guard) = (free()?, Guard::new(ours)?);
        let mut command = self.command(pinning)?;
        command.arg(socket.port().to_string());
        guard.ask(&mut command, ours);
        let address = Address::tls(socket, &ours.authority())?;
        let started = self.started(command, address, Some(guard)).await?;
        let checked = self.check(&started).await;
        checked.map_err(|cause| format!("{}, guarded: {cause}", self.name))?;
        Ok(started)
    }

    async fn check(&self, started: &Started) -> Result<(), Error> {
        let guard = started.guard.as_ref().ok_or("it has no guard")?;
        let echo = self.question(self.wire());
        guard
            .refuses_strangers(&started.address, &started.path, &echo)
            .await?;
        // The call of the start.
        guard.has_rows(1.0).await
    }

    async fn started(
        &self,
        mut command: Command,
        address: Address,
        guard: Option<Guard>,
    ) -> Result<Started, Error> {
        command.stdout(Stdio::null());
        let began = Instant::now();
        let mut started = Started {
            process: Running::start(command)?,
            address,
            path: self.path.clone(),
            guard,
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
    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Returns the path of its endpoint.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the question with this server.
    pub fn asked<'a>(&'a self, question: &'a Question<'a>) -> Asked<'a> {
        Asked {
            address: &self.address,
            pid: self.pid(),
            question,
            kind: match &self.guard {
                None => Kind::Open(&self.path),
                Some(Guard { token, .. }) => Kind::Guarded {
                    path: &self.path,
                    token,
                },
            },
        }
    }

    /// Returns an error unless its guard has written a row about each of these calls; a peer without one has none.
    pub async fn has_rows(&self, calls: f64) -> Result<(), Error> {
        match &self.guard {
            None => Ok(()),
            Some(guard) => guard.has_rows(calls).await,
        }
    }
}

/// The only resource of a peer that notifies of changes.
pub const DOCUMENT: &str = "bench://document";

/// The call that changes it.
pub const TOUCH: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("touch"),
    params: r#""name":"touch","arguments":{}"#,
};

/// Returns the call that every peer supports.
pub fn echo(wire: Wire) -> Question<'static> {
    Question {
        wire,
        method: "tools/call",
        name: Some("echo"),
        params: ECHO,
    }
}

/// Returns a port that is free now.
pub fn free() -> Result<SocketAddr, Error> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}
