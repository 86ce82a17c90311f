//! `tunnel_*`: `WireGuard` tunnels that the owner has configured on this host.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::failure::failed;
use gatewren_host::backends::{Network, Tunnel, TunnelName};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset for hosts with `WireGuard`.
pub fn tools(network: Arc<Network>) -> Toolset<Network> {
    Toolset::new(network)
        .with_name("network")
        .tool("tunnel_list", Risk::Read, list)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("List WireGuard tunnels")
        .tool("tunnel_up", Risk::Disrupt, up)
        .reaches_other_machines()
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Bring a tunnel up")
        .tool("tunnel_down", Risk::Disrupt, down)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Bring a tunnel down")
}

/// List the host's `WireGuard` tunnels: which have a profile, which are up, and each peer's endpoint, allowed
/// addresses, last handshake and traffic. `tunnel_up` brings one up.
///
/// Keys are not shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Tunnels {
    /// Sorted by name.
    tunnels: Vec<Tunnel>,
}

async fn list(network: Arc<Network>, List {}: List, cx: Cx) -> Result<Tunnels> {
    let tunnels = network.tunnels(cx.reference()).await.map_err(failed)?;
    Ok(Tunnels { tunnels })
}

/// Bring up a `WireGuard` tunnel of the host from its profile in `/etc/wireguard`, with its routes and commands, and
/// return its state. A tunnel that takes all traffic may cut this connection. `tunnel_list` lists the profiles.
///
/// Fails without a profile.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Up {
    /// The name.
    tunnel: String,
}

/// Bring down a `WireGuard` tunnel of the host, and return its state. Connections through it, perhaps this client's,
/// are cut. `tunnel_up` brings it up again.
///
/// Fails without a profile.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Down {
    /// The name.
    tunnel: String,
}

#[derive(Serialize, JsonSchema)]
struct Switched {
    /// The name.
    tunnel: String,
    /// Whether it is up now.
    up: bool,
}

async fn up(network: Arc<Network>, Up { tunnel }: Up, cx: Cx) -> Result<Switched> {
    switch(&network, tunnel, true, &cx).await
}

async fn down(network: Arc<Network>, Down { tunnel }: Down, cx: Cx) -> Result<Switched> {
    switch(&network, tunnel, false, &cx).await
}

async fn switch(network: &Network, tunnel: String, up: bool, cx: &Cx) -> Result<Switched> {
    let name: TunnelName = tunnel.clone().try_into().map_err(|_| {
        ToolError::new("`tunnel` is not a valid tunnel name")
            .hint("Nothing was done. tunnel_list lists the tunnels.")
    })?;
    let done = network.switch_tunnel(name, up, cx.reference()).await;
    done.map_err(failed)?;
    Ok(Switched { tunnel, up })
}
