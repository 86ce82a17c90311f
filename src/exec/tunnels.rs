//! What the helper tells of `WireGuard`'s tunnels: everything but their keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A tunnel that is defined on this box, or up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tunnel {
    /// Its name, which is its interface's.
    pub name: String,
    /// Whether there is a profile of it in `/etc/wireguard`, with which it can be brought up.
    pub has_profile: bool,
    /// Whether it is up.
    pub up: bool,
    /// The UDP port on which it listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen_port: Option<u16>,
    /// The other ends, in the kernel's order.
    #[serde(default)]
    pub peers: Vec<TunnelPeer>,
}

/// The other end of a tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelPeer {
    /// Where it was heard from last, or is to be found: address and port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The networks that are reached through it.
    pub allowed_ips: Vec<String>,
    /// When both last agreed on a key, RFC 3339; absent if they never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handshake: Option<String>,
    /// Bytes from it.
    pub received_bytes: u64,
    /// Bytes to it.
    pub sent_bytes: u64,
}
