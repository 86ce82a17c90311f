//! The settings of the front as plain values, with a default for each.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::channel::Channels;
use super::dialect::Dialect;
use super::edge::EdgeJwt;
use super::error::UnknownWord;
use super::glob::Glob;
use super::level::LogLevel;
use super::network::Network;
use super::space::Spaces;

/// Everything that `gatewren serve` is told by its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where it listens.
    pub listen: Vec<SocketAddr>,
    /// The box's host names; empty means: ask the system.
    pub names: Vec<String>,
    /// Where the databases and the certificates are.
    pub state_dir: PathBuf,
    /// `[tls]`
    pub tls: Tls,
    /// `[access]`
    pub access: Access,
    /// `[oauth]`
    pub oauth: OAuth,
    /// `[spaces.NAME]`
    pub spaces: Spaces,
    /// `[notify.NAME]`
    pub notify: Channels,
    /// `[edge_jwt]`
    pub edge_jwt: EdgeJwt,
    /// `[limits]`
    pub limits: Limits,
    /// `[tools]`
    pub tools: Tools,
    /// `[tasks]`
    pub tasks: Tasks,
    /// `[inbox]`
    pub inbox: Inbox,
    /// `[state]`
    pub state: StateLog,
    /// `[audit]`
    pub audit: Audit,
    /// `[metrics]`
    pub metrics: Metrics,
    /// `[lxc]`
    pub lxc: Lxc,
    /// `[observer]`
    pub observer: Observer,
    /// `[helper]`
    pub helper: Helper,
    /// `[log]`
    pub log: Log,
}

/// How tools are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tools {
    /// By which names they are listed.
    pub dialect: Dialect,
}

/// Where the certificate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// From a certificate authority of our own, kept in the state directory.
    Own,
    /// From the two files named.
    Files,
}

/// The certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Where it comes from.
    pub mode: TlsMode,
    /// The chain as PEM, leaf first; set exactly when the mode is `Files`.
    pub cert: Option<PathBuf>,
    /// Its private key as PEM; set exactly when the mode is `Files`.
    pub key: Option<PathBuf>,
}

/// Who may come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Whether the owner's cookie is good for `/mcp`.
    pub owner_on_mcp: bool,
    /// `Host` values allowed beside the names and addresses of the box; lower case.
    pub allowed_hosts: Vec<String>,
    /// `Origin` values allowed beside the box's own; lower case.
    pub allowed_origins: Vec<String>,
    /// A header that every request of an agent must carry, in lower case; empty for none.
    pub required_header: String,
    /// Whether HTTP+SSE is served at `/sse` and `/message`.
    pub http_sse: bool,
    /// Without a use for so long, a login with a cookie ends.
    pub login_idle: Duration,
    /// It lasts so long at most.
    pub login_max: Duration,
    /// For how long browsers that were on the owner's page use this host over TLS alone; zero takes it back.
    pub hsts: Duration,
}

/// How programs come in over OAuth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OAuth {
    /// Whether they do.
    pub enabled: bool,
    /// Whether a document that says who a program is may be fetched from the local network too.
    pub local_clients: bool,
}

/// How much of anything there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub max_connections: u32,
    /// Connections without an identity from one address, an IPv6 one by its /64.
    pub unauthenticated_per_address: u32,
    /// The same from one address of loopback or of a trusted proxy.
    pub unauthenticated_per_proxy: u32,
    /// Addresses that many clients share.
    pub trusted_proxies: Vec<Network>,
    /// From accepting a connection to the end of its TLS handshake.
    pub handshake_timeout: Duration,
    /// From the handshake, or the answer before, to the last header of a request.
    pub header_timeout: Duration,
    /// Bytes of a request's body.
    pub body_limit: usize,
    /// From the last header to the last byte of the body.
    pub body_timeout: Duration,
    /// Open streams of one agent.
    pub max_streams_per_agent: u32,
    /// Open streams of all agents.
    pub max_streams: u32,
    /// Without a request or an open stream for so long, a session ends.
    pub session_idle: Duration,
    /// The same for a session that was never used after `initialize`.
    pub session_unused: Duration,
    /// Sessions of one agent.
    pub max_sessions_per_agent: u32,
    /// Sessions of all agents.
    pub max_sessions: u32,
    /// How long a stop waits for what is running.
    pub drain: Duration,
    /// A client hears of one resource that keeps changing at most so often.
    pub update_interval: Duration,
    /// How often a call that reports no progress itself is shown to be alive; zero for never.
    pub heartbeat: Duration,
    /// Requests a second from one address before it says who it is.
    pub address_rate: u32,
    /// How many of those may come at once.
    pub address_burst: u32,
    /// Calls a minute of one agent.
    pub agent_rate: u32,
    /// Calls of one agent at once, and as many that only read.
    pub agent_calls: u32,
    /// Messages an hour of one agent to the owner's channels.
    pub agent_messages: u32,
}

impl Limits {
    /// Whether many clients share an address: it is loopback, or a trusted proxy's.
    pub fn is_shared(&self, address: IpAddr) -> bool {
        let trusted = &self.trusted_proxies;
        address.to_canonical().is_loopback() || trusted.iter().any(|one| one.contains(address))
    }
}

/// Calls that go on after their answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tasks {
    /// A call that may become a task does so when it has run so long.
    pub after: Duration,
    /// How long a task is kept, from its making on.
    pub ttl: Duration,
    /// Tasks of one agent that are kept at once.
    pub per_agent: u32,
    /// Tasks of all agents that are kept at once.
    pub total: u32,
}

/// What agents propose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbox {
    /// A change that has not begun so long after it was proposed is begun no more.
    pub expires: Duration,
    /// Open changes of one agent.
    pub per_agent: u32,
    /// Open changes of all agents.
    pub total: u32,
}

/// The log of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLog {
    /// Revisions younger than this are kept.
    pub keep: Duration,
    /// So many revisions are kept at most.
    pub keep_revisions: u32,
}

/// The record of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Calls younger than this are kept.
    pub keep: Duration,
    /// So many rows are kept at most.
    pub keep_rows: u32,
}

/// The counters at `/metrics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Whether whoever is on the box sees them without a token.
    pub loopback: bool,
}

/// The containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lxc {
    /// Where they are, when not where LXC's own settings say.
    pub lxcpath: Option<PathBuf>,
}

/// What the state document tells of the box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observer {
    /// Units in it beside those that failed or are enabled.
    pub units: Vec<Glob>,
}

/// The root side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    /// The socket it listens on.
    pub socket: PathBuf,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// The least serious line that is written.
    pub level: LogLevel,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8443))],
            names: Vec::new(),
            state_dir: PathBuf::from("/var/lib/gatewren"),
            tls: Tls {
                mode: TlsMode::Own,
                cert: None,
                key: None,
            },
            access: Access::default(),
            oauth: OAuth {
                enabled: true,
                local_clients: false,
            },
            spaces: Spaces::new(),
            notify: Channels::new(),
            edge_jwt: EdgeJwt::default(),
            limits: Limits::default(),
            tools: Tools::default(),
            tasks: Tasks::default(),
            inbox: Inbox::default(),
            state: StateLog::default(),
            audit: Audit::default(),
            metrics: Metrics::default(),
            lxc: Lxc::default(),
            observer: Observer::default(),
            helper: Helper {
                socket: PathBuf::from("/run/gatewren/helper.sock"),
            },
            log: Log {
                level: LogLevel::Info,
            },
        }
    }
}

impl Default for Access {
    fn default() -> Self {
        Self {
            owner_on_mcp: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            required_header: String::new(),
            http_sse: false,
            login_idle: Duration::from_hours(12),
            login_max: Duration::from_hours(30 * 24),
            hsts: Duration::from_hours(30 * 24),
        }
    }
}

impl Default for StateLog {
    fn default() -> Self {
        Self {
            keep: Duration::from_hours(30 * 24),
            keep_revisions: 200_000,
        }
    }
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            keep: Duration::from_hours(365 * 24),
            keep_rows: 1_000_000,
        }
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            expires: Duration::from_hours(24),
            per_agent: 64,
            total: 512,
        }
    }
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(45),
            ttl: Duration::from_hours(1),
            per_agent: 256,
            total: 1024,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 4096,
            unauthenticated_per_address: 64,
            unauthenticated_per_proxy: 1024,
            trusted_proxies: Vec::new(),
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            body_limit: 1 << 20,
            body_timeout: Duration::from_secs(30),
            max_streams_per_agent: 1024,
            max_streams: 4096,
            session_idle: Duration::from_mins(30),
            session_unused: Duration::from_mins(5),
            max_sessions_per_agent: 1024,
            max_sessions: 4096,
            drain: Duration::from_secs(30),
            update_interval: Duration::from_millis(500),
            heartbeat: Duration::from_secs(2),
            address_rate: 50,
            address_burst: 200,
            agent_rate: 600_000,
            agent_calls: 16,
            agent_messages: 20,
        }
    }
}

impl fmt::Display for TlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "own",
            Self::Files => "files",
        })
    }
}

impl FromStr for TlsMode {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "own" => Ok(Self::Own),
            "files" => Ok(Self::Files),
            _ => Err(UnknownWord::new(word, &["own", "files"])),
        }
    }
}
