//! `server_*`: the host itself.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::failure::failed;
use gatewren_host::backends::{Host, HostMetrics, ServerInfo, ServerTime};
use gatewren_wire::registry::{Cx, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(host: Arc<Host>) -> Toolset<Host> {
    Toolset::new(host)
        .with_name("server")
        .tool("server_info", Risk::Read, info)
        .about(Scope::Host)
        .titled("About the server")
        .startos("server.device-info", &[])
        .tool("server_metrics", Risk::Read, metrics)
        .about(Scope::Host)
        .titled("Server metrics")
        .startos("server.metrics", &[])
        .tool("server_time", Risk::Read, time)
        .about(Scope::Host)
        .titled("Server time")
        .startos("server.time", &[])
}

/// Describe the host: operating system, kernel, architecture, virtualization, hardware, CPU, memory, GPUs, addresses,
/// boot time, and whether an update needs a reboot. `server_metrics` has the values that change every second.
///
/// Unknown values are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Info {}

async fn info(host: Arc<Host>, Info {}: Info, _: Cx) -> Result<ServerInfo> {
    host.info().await.map_err(failed)
}

/// Measure the host now: CPU use over a fifth of a second, load, pressure, memory, swap, mounted file systems,
/// temperatures, and network and disk counters since boot. `server_info` describes the host.
///
/// Unavailable values are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Measure {}

async fn metrics(host: Arc<Host>, Measure {}: Measure, _: Cx) -> Result<HostMetrics> {
    host.metrics().await.map_err(failed)
}

/// Show the host's clock: UTC time, time zone, NTP synchronisation, boot time, and the uptime of the host and of
/// gatewren. `server_info` describes the host.
///
/// Unknown values are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Time {}

async fn time(host: Arc<Host>, Time {}: Time, _: Cx) -> Result<ServerTime> {
    host.time().await.map_err(failed)
}
