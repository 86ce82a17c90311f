//! `network_*`: the host's interfaces and routes.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::failure::failed;
use crate::backends::{Host, Interface, NetworkTraffic, Route};
use crate::registry::{Cx, Result, Risk, Scope, Toolset};

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
}

/// Lists the host's network interfaces: what each is, whether it is up, its speed, hardware address and
/// addresses, and what went through it since boot.
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
    traffic: Option<NetworkTraffic>,
}

async fn interfaces(host: Arc<Host>, Interfaces {}: Interfaces, _: Cx) -> Result<AllInterfaces> {
    let all = host.interfaces().await.map_err(failed)?.into_iter();
    let counted = |(interface, traffic)| Counted { interface, traffic };
    Ok(AllInterfaces {
        interfaces: all.map(counted).collect(),
    })
}

/// Lists the host's routes for IPv4 and IPv6, the default ones first.
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
