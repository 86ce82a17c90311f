//! `network_*`: the host's interfaces, addresses, routes, open ports and neighbours.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    Host, HostListener, Interface, Neighbor, NetworkTraffic, ReachableAddress, Route,
};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, Toolset};

/// The maximum number of open ports, and of neighbours, in one answer; `left_out` counts the others.
const MOST: usize = 256;

/// The toolset.
pub fn tools(host: Arc<Host>) -> Toolset<Host> {
    Toolset::new(host)
        .with_name("network")
        .tool("network_interfaces", Risk::Read, interfaces)
        .about(Scope::Host)
        .titled("Network interfaces")
        .startos("net.gateway.list", &[])
        .tool("network_routes", Risk::Read, routes)
        .about(Scope::Host)
        .titled("Network routes")
        .tool("network_addresses", Risk::Read, addresses)
        .about(Scope::Host)
        .titled("Host addresses")
        .startos("server.host.address.list", &[])
        .tool("network_listeners", Risk::Read, listeners)
        .about(Scope::Host)
        .titled("Open ports")
        .startos("server.host.binding.list", &[])
        .tool("network_neighbors", Risk::Read, neighbors)
        .about(Scope::Host)
        .titled("Network neighbours")
}

/// List the host's network interfaces: type, state, speed, hardware address, addresses, and traffic since boot.
/// `network_routes` shows where traffic goes.
///
/// Values that an interface does not have are left out.
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
    /// Traffic since boot; absent if too new to be counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<NetworkTraffic>,
}

async fn interfaces(host: Arc<Host>, Interfaces {}: Interfaces, cx: Cx) -> Result<AllInterfaces> {
    let mut all = host.interfaces().await.map_err(failed)?;
    // A bridge port may be the link of any container; the interface does not identify it.
    all.retain(|(one, _)| cx.caller().reach.is_everything() || !one.is_port());
    let counted = |(interface, traffic)| Counted { interface, traffic };
    Ok(AllInterfaces {
        interfaces: all.into_iter().map(counted).collect(),
    })
}

/// List the host's IPv4 and IPv6 routes, default routes first. `network_interfaces` describes the interfaces.
///
/// Routes to directly connected networks have no gateway.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Routes {}

#[derive(Serialize, JsonSchema)]
struct AllRoutes {
    /// Default routes first, then by destination.
    routes: Vec<Route>,
}

async fn routes(host: Arc<Host>, Routes {}: Routes, _: Cx) -> Result<AllRoutes> {
    Ok(AllRoutes {
        routes: host.routes().await.map_err(failed)?,
    })
}

/// Show how to reach the host: its name, and its addresses with their interfaces and from where each is reachable.
/// `network_listeners` lists open ports.
///
/// Loopback, link-local and temporary addresses are left out.
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

/// List the host's own open ports: listening TCP ports, and UDP ports that accept packets from any sender.
/// `container_ports` lists those of containers.
///
/// Shows the user and the systemd unit, container or program of each, unless the kernel hides them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Listeners {}

#[derive(Serialize, JsonSchema)]
struct AllListeners {
    /// Sorted by protocol, port and address.
    listeners: Vec<HostListener>,
    /// How many are left out.
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

/// List neighbours on the host's networks (ARP and IPv6 neighbour discovery): address, hardware address, interface, and
/// whether each answered recently. `network_interfaces` describes the interfaces.
///
/// Machines that the host never contacted are not listed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Neighbors {}

#[derive(Serialize, JsonSchema)]
struct AllNeighbors {
    /// Sorted by interface and address.
    neighbors: Vec<Neighbor>,
    /// How many are left out.
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
