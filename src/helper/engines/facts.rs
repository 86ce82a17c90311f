//! Facts about a container that both the list of containers and the answer for one of them have.

use std::net::IpAddr;

use serde::Deserialize;

use super::text::{MAX_PATH_CHARS, plain, short_text};

/// The most ports of one container that are kept; others are left out. Some containers publish thousands.
pub(super) const MAX_PORTS: usize = 1024;

/// The state of a container, as the engines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineStatus {
    /// It exists and has not been started.
    Created,
    /// Its main process runs.
    Running,
    /// Its processes are frozen.
    Paused,
    /// The engine starts it again after its main process ended.
    Restarting,
    /// Its main process has ended.
    Exited,
    /// The engine is removing it.
    Removing,
    /// The engine could not remove it completely.
    Dead,
    /// A state that this client does not know.
    Unknown,
}

/// A port of a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EnginePort {
    /// The port inside.
    pub container_port: u16,
    /// `tcp`, `udp` or `sctp`.
    pub protocol: String,
    /// The address of the host; `None` if the port is not published, or if the engine names no address, which means
    /// all of them.
    pub host_ip: Option<IpAddr>,
    /// The port of the host; `None` if the port is not published.
    pub host_port: Option<u16>,
}

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EngineMount {
    /// `bind`, `volume`, `tmpfs` or another word of the engine.
    pub kind: String,
    /// The path on the host; empty where there is none.
    pub source: String,
    /// The path in the container.
    pub destination: String,
    /// Whether the container may write to it.
    pub is_writable: bool,
}

impl EngineStatus {
    /// Parses the engines' word. Podman has more of them than Docker.
    pub(super) fn parse(word: &str) -> Self {
        match word {
            "created" | "configured" | "initialized" => Self::Created,
            "running" | "stopping" => Self::Running,
            "paused" => Self::Paused,
            "restarting" => Self::Restarting,
            "exited" | "stopped" => Self::Exited,
            "removing" => Self::Removing,
            "dead" => Self::Dead,
            _ => Self::Unknown,
        }
    }

    /// The word for it, which is Docker's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Restarting => "restarting",
            Self::Exited => "exited",
            Self::Removing => "removing",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// A port in the list of containers.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedPort {
    #[serde(rename = "IP")]
    ip: Option<String>,
    private_port: Option<u16>,
    public_port: Option<u16>,
    #[serde(rename = "Type")]
    protocol: Option<String>,
}

impl ListedPort {
    /// Converts it; `None` if it has no port.
    pub(super) fn into_port(self) -> Option<EnginePort> {
        Some(EnginePort {
            container_port: self.private_port?,
            protocol: short_text(self.protocol.as_deref()),
            host_ip: self.ip.and_then(|ip| ip.parse().ok()),
            host_port: self.public_port.filter(|port| *port != 0),
        })
    }
}

/// A mount, as both answers have it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AnsweredMount {
    #[serde(rename = "Type")]
    kind: Option<String>,
    source: Option<String>,
    destination: Option<String>,
    #[serde(rename = "RW")]
    is_writable: Option<bool>,
}

impl From<AnsweredMount> for EngineMount {
    fn from(mount: AnsweredMount) -> Self {
        let path = |path: Option<String>| plain(&path.unwrap_or_default(), MAX_PATH_CHARS);
        Self {
            kind: short_text(mount.kind.as_deref()),
            source: path(mount.source),
            destination: path(mount.destination),
            // A mount without the fact counts as writable, since a decision of the policy depends on it.
            is_writable: mount.is_writable.unwrap_or(true),
        }
    }
}
