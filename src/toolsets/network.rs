//! `network_*`: the host's interfaces, addresses, routes, open ports and neighbours.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use crate::backends::{
    Host, HostListener, Interface, Neighbor, NetworkTraffic, ReachableAddress, Route,
};
use crate::registry::{Cx, Result, Risk, Scope, Toolset};

/// The most open ports, and the most neighbours, of one answer; what is beyond them is counted in `left_out`.
const MOST: usize = 256;

/// The group, as a table.
pub fn tools(host: Arc<Host>) -> Toolset<Host> {
    Toolset::over(host)
        .named("network")
        .tool("network_interfaces", Risk::Read, interfaces)
        .about(Scope::Host)
        .titled("Network interfaces")
        .startos("net.gateway.list", &[])
        .tool("network_routes", Risk::Read, routes)
        .about(Scope::Host)
        .titled("Routes")
        .tool("network_addresses", Risk::Read, addresses)
        .about(Scope::Host)
        .titled("Addresses of the host")
        .startos("server.host.address.list", &[])
        .tool("network_listeners", Risk::Read, listeners)
        .about(Scope::Host)
        .titled("Open ports of the host")
        .startos("server.host.binding.list", &[])
        .tool("network_neighbors", Risk::Read, neighbors)
        .about(Scope::Host)
        .titled("Neighbours on the network")
}

/// Lists the host's network interfaces: what each is, whether it is up, its speed, hardware address and addresses,
/// and what went through it since boot. What an interface does not have is left out. `network_routes` says where
/// traffic goes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interfaces {}

#[derive(Serialize, JsonSchema)]
struct AllInterfaces {
    /// Sorted by name.
    interfaces: Vec<Counted>,
}

#[derive(Serialize, JsonSchema)]
struct Counted {
    #[serde(flatten)]
    interface: Interface,
    /// What went through it since boot; absent when it is too new to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<NetworkTraffic>,
}

async fn interfaces(host: Arc<Host>, Interfaces {}: Interfaces, cx: Cx) -> Result<AllInterfaces> {
    let mut all = host.interfaces().await.map_err(failed)?;
    // Whose end of a wire it is, nothing says for sure.
    all.retain(|(one, _)| cx.caller().reach.is_everything() || !one.is_port());
    let counted = |(interface, traffic)| Counted { interface, traffic };
    Ok(AllInterfaces {
        interfaces: all.into_iter().map(counted).collect(),
    })
}

/// Lists the host's routes for IPv4 and IPv6, the default ones first. A route into a network at hand has no
/// gateway, and none is told. `network_interfaces` describes the interfaces.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Routes {}

#[derive(Serialize, JsonSchema)]
struct AllRoutes {
    /// The default ones first, then sorted by destination.
    routes: Vec<Route>,
}

async fn routes(host: Arc<Host>, Routes {}: Routes, _: Cx) -> Result<AllRoutes> {
    Ok(AllRoutes {
        routes: host.routes().await.map_err(failed)?,
    })
}

/// Tells how the host can be reached: its name, and its addresses with their interfaces and from where each can be
/// reached. Loopback, link-local and temporary addresses are left out. `network_listeners` tells which ports are
/// open.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Addresses {}

#[derive(Serialize, JsonSchema)]
struct AllAddresses {
    /// The host's name.
    hostname: String,
    /// Sorted by interface.
    addresses: Vec<ReachableAddress>,
}

async fn addresses(host: Arc<Host>, Addresses {}: Addresses, _: Cx) -> Result<AllAddresses> {
    let (hostname, addresses) = host.addresses().await.map_err(failed)?;
    Ok(AllAddresses {
        hostname,
        addresses,
    })
}

/// Lists the open ports of the host itself: TCP ports that are listened on and UDP ports that take from everybody,
/// with the user and the systemd unit, container or program that opened each, left out where the kernel does not
/// tell. `container_ports` tells those of containers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Listeners {}

#[derive(Serialize, JsonSchema)]
struct AllListeners {
    /// Sorted by protocol, port and address.
    listeners: Vec<HostListener>,
    /// How many more there are.
    left_out: usize,
}

async fn listeners(host: Arc<Host>, Listeners {}: Listeners, cx: Cx) -> Result<AllListeners> {
    let mut listeners = host.listeners().await.map_err(failed)?;
    let reach = &cx.caller().reach;
    listeners.retain(|one| {
        let unit = one.unit.as_deref().is_none_or(|unit| reach.unit(unit));
        unit && one
            .container
            .as_deref()
            .is_none_or(|name| reach.container(name))
    });
    let left_out = listeners.len().saturating_sub(MOST);
    listeners.truncate(MOST);
    Ok(AllListeners {
        listeners,
        left_out,
    })
}

/// Lists the machines on the host's networks that it has met (ARP and IPv6 neighbour discovery): address, hardware
/// address, interface, and whether each has answered lately. Who was never talked to is not among them.
/// `network_interfaces` describes the interfaces.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Neighbors {}

#[derive(Serialize, JsonSchema)]
struct AllNeighbors {
    /// Sorted by interface and address.
    neighbors: Vec<Neighbor>,
    /// How many more there are.
    left_out: usize,
}

async fn neighbors(host: Arc<Host>, Neighbors {}: Neighbors, _: Cx) -> Result<AllNeighbors> {
    let mut neighbors = host.neighbors().await.map_err(failed)?;
    let left_out = neighbors.len().saturating_sub(MOST);
    neighbors.truncate(MOST);
    Ok(AllNeighbors {
        neighbors,
        left_out,
    })
}
