//! `tunnel_*`: `WireGuard`'s tunnels that the owner has made on this box.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use crate::backends::{Network, Tunnel, TunnelName};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The group, as a table, for a box with `WireGuard`.
pub fn tools(network: Arc<Network>) -> Toolset<Network> {
    Toolset::over(network)
        .named("network")
        .tool("tunnel_list", Risk::Read, list)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("WireGuard tunnels")
        .tool("tunnel_up", Risk::Disrupt, up)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Bring a tunnel up")
        .tool("tunnel_down", Risk::Disrupt, down)
        .about(Scope::Host)
        .through(HelperClass::Network)
        .titled("Take a tunnel down")
}

/// Lists the host's `WireGuard` tunnels: which have a profile, which are up, and of each other end where it is, what is
/// reached through it, when it was heard last, and how much went through. Keys are not told. `tunnel_up` brings one up.
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

/// Brings up a `WireGuard` tunnel of the host from its profile in `/etc/wireguard`, with the routes and commands that
/// stand there, and returns that it is up. It fails where there is no such profile; one that takes all traffic may cut
/// this connection off. `tunnel_list` names the profiles.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Up {
    /// Its name.
    tunnel: String,
}

/// Takes down a `WireGuard` tunnel of the host, and returns that it is down. It fails where there is no such profile;
/// whoever is reached through it, this client perhaps, is cut off. `tunnel_up` brings it up again.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Down {
    /// Its name.
    tunnel: String,
}

#[derive(Serialize, JsonSchema)]
struct Switched {
    /// Its name.
    tunnel: String,
    /// Whether it is up now.
    up: bool,
}

async fn up(network: Arc<Network>, asked: Up, cx: Cx) -> Result<Switched> {
    switch(&network, (asked.tunnel, true), &cx).await
}

async fn down(network: Arc<Network>, asked: Down, cx: Cx) -> Result<Switched> {
    switch(&network, (asked.tunnel, false), &cx).await
}

async fn switch(network: &Network, (tunnel, up): (String, bool), cx: &Cx) -> Result<Switched> {
    let name: TunnelName = tunnel.clone().try_into().map_err(|_| {
        ToolError::new("`tunnel` is no name of a tunnel")
            .hint("Nothing was done. tunnel_list names those that there are.")
    })?;
    let done = network.switch_tunnel(name, up, cx.reference()).await;
    done.map_err(failed)?;
    Ok(Switched { tunnel, up })
}
