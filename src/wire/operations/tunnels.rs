//! Information about `WireGuard` tunnels: everything except their keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tunnel that has a profile on this host, or is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tunnel {
    /// Its name, which is also the name of its interface.
    pub name: String,
    /// Whether `/etc/wireguard` has a profile that can bring it up.
    pub has_profile: bool,
    /// Whether it is up.
    pub up: bool,
    /// The UDP port that it listens on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_port: Option<u16>,
    /// Its peers, in the kernel's order.
    #[serde(default)]
    pub peers: Vec<TunnelPeer>,
}

/// A peer of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelPeer {
    /// The peer's last or configured endpoint: address and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The networks that are routed through it.
    pub allowed_ips: Vec<String>,
    /// The time of the last handshake, RFC 3339; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handshake: Option<String>,
    /// Bytes received from it.
    pub received_bytes: u64,
    /// Bytes sent to it.
    pub sent_bytes: u64,
}
