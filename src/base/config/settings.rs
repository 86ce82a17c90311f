//! The settings of the front as plain values, with defaults.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::channel::Channels;
use super::dialect::Dialect;
use super::edge_jwt::EdgeJwt;
use super::glob::Glob;
use super::network::IpNetwork;
use super::space::Spaces;
use super::tls_settings::TlsSettings;
use super::workers::WorkerSettings;
use gatewren_portable::LogLevel;

/// All settings of `gatewren serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// The host names; empty to use the system's.
    pub names: Vec<String>,
    /// The directory of the databases and the certificates.
    pub state_dir: PathBuf,
    /// `[tls]`
    pub tls: TlsSettings,
    /// `[access]`
    pub access: AccessSettings,
    /// `[oauth]`
    pub oauth: OAuthSettings,
    /// `[spaces.NAME]`
    pub spaces: Spaces,
    /// `[notify.NAME]`
    pub notify: Channels,
    /// `[edge_jwt]`
    pub edge_jwt: EdgeJwt,
    /// `[limits]`
    pub limits: LimitSettings,
    /// `[tools]`
    pub tools: ToolSettings,
    /// `[tasks]`
    pub tasks: TaskSettings,
    /// `[inbox]`
    pub inbox: InboxSettings,
    /// `[state]`
    pub state: StateLogSettings,
    /// `[audit]`
    pub audit: AuditSettings,
    /// `[metrics]`
    pub metrics: MetricsSettings,
    /// `[lxc]`
    pub lxc: LxcSettings,
    /// `[observer]`
    pub observer: ObserverSettings,
    /// `[sessions]`
    pub sessions: SessionSettings,
    /// `[workers]`
    pub workers: WorkerSettings,
    /// `[helper]`
    pub helper: HelperSettings,
    /// `[log]`
    pub log: LogSettings,
}

/// The sessions of clients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionSettings {
    /// The name of this front, with which its session ids begin; empty for none.
    pub instance: String,
}

/// The presentation of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolSettings {
    /// The names under which they are listed.
    pub dialect: Dialect,
}

/// Access to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own, and they do not depend on each other"
)]
pub struct AccessSettings {
    /// Whether the owner's cookie is valid at `/mcp`.
    pub owner_on_mcp: bool,
    /// `Host` values to allow in addition to the host's names and addresses; lower case.
    pub allowed_hosts: Vec<String>,
    /// `Origin` values to allow in addition to our own; lower case.
    pub allowed_origins: Vec<String>,
    /// A header that each request of an agent must have, in lower case; empty for none.
    pub required_header: String,
    /// The file with the value that this header must have; `None` for any value.
    pub required_header_value_file: Option<PathBuf>,
    /// The path of the health check.
    pub health_path: String,
    /// Whether the health check answers with the version.
    pub health_version: bool,
    /// Whether `/mcp` answers with event streams.
    pub streaming: bool,
    /// Whether HTTP+SSE is served at `/sse` and `/message`.
    pub http_sse: bool,
    /// How long an unused login with a cookie lasts.
    pub login_idle: Duration,
    /// How long a login lasts at most.
    pub login_max: Duration,
    /// How long browsers that visited the owner's page use only TLS for this host; zero removes the rule.
    pub hsts: Duration,
}

/// OAuth for programs without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OAuthSettings {
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether client metadata documents may also be fetched from the local network.
    pub local_clients: bool,
}

/// Limits and timeouts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    /// Open connections.
    pub max_connections: u32,
    /// Open unauthenticated connections from one address; IPv6 addresses count by /64.
    pub unauthenticated_per_address: u32,
    /// The same limit for each loopback address and each trusted proxy.
    pub unauthenticated_per_proxy: u32,
    /// Addresses that many clients share.
    pub trusted_proxies: Vec<IpNetwork>,
    /// The time from accepting a connection to the end of its TLS handshake.
    pub handshake_timeout: Duration,
    /// The time from the handshake, or the previous response, to the last header of a request.
    pub header_timeout: Duration,
    /// The maximum number of bytes of a request's body.
    pub body_limit: usize,
    /// The time from the last header to the last byte of the body.
    pub body_timeout: Duration,
    /// Open streams of one agent.
    pub max_streams_per_agent: u32,
    /// Open streams of all agents.
    pub max_streams: u32,
    /// How long a session lasts without a request or an open stream.
    pub session_idle: Duration,
    /// How long a session lasts that was never used after `initialize`.
    pub session_unused: Duration,
    /// Sessions of one agent.
    pub max_sessions_per_agent: u32,
    /// Sessions of all agents.
    pub max_sessions: u32,
    /// How long a stop waits for running calls.
    pub drain: Duration,
    /// The minimum interval of updates of one resource to a client.
    pub update_interval: Duration,
    /// How long a question to the user of a client waits.
    pub confirm_timeout: Duration,
    /// The interval of progress notifications for a call that reports no progress itself; zero for none.
    pub heartbeat: Duration,
    /// Requests per second from one address without a valid token.
    pub address_rate: u32,
    /// The burst of such requests.
    pub address_burst: u32,
    /// Calls per minute of one agent.
    pub agent_rate: u32,
    /// Concurrent calls of one agent. Read-only calls have a separate limit of the same number.
    pub agent_calls: u32,
    /// Concurrent calls of all agents. Read-only calls have a separate limit of the same number.
    pub max_calls: u32,
    /// Messages per hour of one agent to the owner's channels.
    pub agent_messages: u32,
}

impl LimitSettings {
    /// Returns whether many clients share an address: it is loopback, or a trusted proxy.
    pub fn is_shared(&self, address: IpAddr) -> bool {
        let trusted = &self.trusted_proxies;
        address.to_canonical().is_loopback() || trusted.iter().any(|one| one.contains(address))
    }
}

/// Calls that continue as a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSettings {
    /// How long a call runs before it becomes a task, if it may become one.
    pub after: Duration,
    /// How long a task is kept after its creation.
    pub ttl: Duration,
    /// Stored tasks of one agent.
    pub per_agent: u32,
    /// Stored tasks of all agents.
    pub total: u32,
}

/// Changes that agents propose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxSettings {
    /// How long after its proposal a change expires if it has not started.
    pub expires: Duration,
    /// Open changes of one agent.
    pub per_agent: u32,
    /// Open changes of all agents.
    pub total: u32,
}

/// The log of the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLogSettings {
    /// Revisions younger than this are kept.
    pub keep: Duration,
    /// The maximum number of revisions to keep.
    pub keep_revisions: u32,
}

/// The record of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// Calls younger than this are kept.
    pub keep: Duration,
    /// The maximum number of rows to keep.
    pub keep_rows: u32,
}

/// The counters at `/metrics`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetricsSettings {
    /// Whether clients on this host can read them without a token.
    pub loopback: bool,
}

/// The containers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LxcSettings {
    /// Their directory; `None` to use LXC's own setting.
    pub lxcpath: Option<PathBuf>,
}

/// The contents of the state document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObserverSettings {
    /// Units to include in addition to the failed and enabled ones.
    pub units: Vec<Glob>,
}

/// The root helper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperSettings {
    /// The socket that it listens on.
    pub socket: PathBuf,
}

/// The log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// The minimum severity of logged messages.
    pub level: LogLevel,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, 8443))],
            names: Vec::new(),
            state_dir: PathBuf::from("/var/lib/gatewren"),
            tls: TlsSettings::default(),
            access: AccessSettings::default(),
            oauth: OAuthSettings {
                enabled: true,
                local_clients: false,
            },
            spaces: Spaces::new(),
            notify: Channels::new(),
            edge_jwt: EdgeJwt::default(),
            limits: LimitSettings::default(),
            tools: ToolSettings::default(),
            tasks: TaskSettings::default(),
            inbox: InboxSettings::default(),
            state: StateLogSettings::default(),
            audit: AuditSettings::default(),
            metrics: MetricsSettings::default(),
            lxc: LxcSettings::default(),
            observer: ObserverSettings::default(),
            sessions: SessionSettings::default(),
            workers: WorkerSettings::default(),
            helper: HelperSettings {
                socket: PathBuf::from("/run/gatewren/helper.sock"),
            },
            log: LogSettings {
                level: LogLevel::Info,
            },
        }
    }
}

impl Default for AccessSettings {
    fn default() -> Self {
        Self {
            owner_on_mcp: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            required_header: String::new(),
            required_header_value_file: None,
            health_path: "/health".to_owned(),
            health_version: false,
            streaming: true,
            http_sse: false,
            login_idle: Duration::from_hours(12),
            login_max: Duration::from_hours(30 * 24),
            hsts: Duration::from_hours(30 * 24),
        }
    }
}

impl Default for StateLogSettings {
    fn default() -> Self {
        Self {
            keep: Duration::from_hours(30 * 24),
            keep_revisions: 200_000,
        }
    }
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            keep: Duration::from_hours(365 * 24),
            keep_rows: 1_000_000,
        }
    }
}

impl Default for InboxSettings {
    fn default() -> Self {
        Self {
            expires: Duration::from_hours(24),
            per_agent: 64,
            total: 512,
        }
    }
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(45),
            ttl: Duration::from_hours(1),
            per_agent: 256,
            total: 1024,
        }
    }
}

impl Default for LimitSettings {
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
            confirm_timeout: Duration::from_mins(5),
            heartbeat: Duration::from_secs(2),
            address_rate: 50,
            address_burst: 200,
            agent_rate: 600_000,
            agent_calls: 16,
            max_calls: 1024,
            agent_messages: 20,
        }
    }
}
