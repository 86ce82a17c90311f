//! `container_*`: queries, start and stop of containers.

use std::net::IpAddr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use crate::toolsets::long_call::call_job;
use gatewren_host::backends::{
    ContainerDetails, ContainerListener, ContainerRef, ContainerUsage, Lxc,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    const ID: &[(&str, &str)] = &[("id", "container")];
    Toolset::new(lxc)
        .with_name("containers")
        .tool("container_list", Risk::Read, list)
        .about(Scope::Within)
        .through(HelperClass::LxcReads)
        .titled("List containers")
        .startos("package.list", &[])
        .tool("container_info", Risk::Read, info)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Container details")
        .startos("package.installed-version", ID)
        .tool("container_stats", Risk::Read, stats)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Container resource usage")
        .startos("package.stats", ID)
        .tool("container_ports", Risk::Read, ports)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Container addresses and ports")
        .startos("package.host.list", ID)
        .tool("container_start", Risk::Write, start)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcWrites)
        .titled("Start a container")
        .startos("package.start", ID)
        .syncs_state()
        .tool("container_stop", Risk::Disrupt, stop)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcWrites)
        .titled("Stop a container")
        .startos("package.stop", ID)
        .long()
        .syncs_state()
        .tool("container_restart", Risk::Disrupt, restart)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcWrites)
        .titled("Restart a container")
        .startos("package.restart", ID)
        .syncs_state()
}

/// List the containers of LXC, Docker and Podman that you may see, with state, addresses, operating system, autostart,
/// memory and CPU use. `container_info` shows more of one, even if it has no address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Containers {
    /// The containers, sorted by name.
    containers: Vec<ContainerDetails>,
}

async fn list(lxc: Arc<Lxc>, List {}: List, cx: Cx) -> Result<Containers> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    Ok(Containers {
        containers: lxc.all().await.map_err(failed)?,
    })
}

/// Describe one container: state, addresses, operating system, autostart, memory, CPU, processes, disk use, configured
/// networks, mounts and limits; for Docker and Podman also image, health and Compose project. `container_stats`
/// measures its usage.
///
/// Values of running containers are left out for others.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Info {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

async fn info(lxc: Arc<Lxc>, Info { container }: Info, cx: Cx) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let details = lxc.info(&container).await.map_err(failed)?;
    Ok(ContainerDetails {
        disk_bytes: lxc.disk_bytes(&container).await,
        ..details
    })
}

/// Measure usage and limits of running containers: memory, CPU, processes, disk and network traffic.
///
/// Fails for a stopped container; `container_list` shows which ones run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stats {
    /// The container's name; default: all running ones. `container_list` shows it.
    #[serde(default)]
    container: Option<ContainerRef>,
}

#[derive(Serialize, JsonSchema)]
struct Measured {
    /// The running containers, sorted by name.
    containers: Vec<Use>,
}

#[derive(Serialize, JsonSchema)]
struct Use {
    /// The container's name.
    container: ContainerRef,
    /// CPU use since the last measurement, 0.2 to 10 seconds ago, in percent of one CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_percent: Option<f64>,
    #[serde(flatten)]
    usage: ContainerUsage,
}

async fn stats(lxc: Arc<Lxc>, Stats { container }: Stats, cx: Cx) -> Result<Measured> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let measured = lxc.measured_usage(container.as_ref()).await;
    let containers = measured.map_err(failed)?.into_iter();
    let containers = containers.map(|(container, measured)| Use {
        container,
        cpu_percent: measured.cpu_percent,
        usage: measured.usage,
    });
    Ok(Measured {
        containers: containers.collect(),
    })
}

/// Show the addresses and open ports of a running container.
///
/// Fails if it is not running. Whether other machines can reach them depends on the network between;
/// `network_addresses` shows how the host is reached.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ports {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

#[derive(Serialize, JsonSchema)]
struct OpenPorts {
    /// Its addresses, sorted, except loopback and link-local ones.
    addresses: Vec<IpAddr>,
    /// Whether it shares the host's network: addresses and ports are then the host's.
    shares_host_network: bool,
    /// The open ports, sorted by protocol and port.
    ports: Vec<ContainerListener>,
}

async fn ports(lxc: Arc<Lxc>, Ports { container }: Ports, cx: Cx) -> Result<OpenPorts> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let vitals = lxc.vitals(&container).await.map_err(failed)?;
    Ok(OpenPorts {
        addresses: vitals.addresses,
        shares_host_network: vitals.shares_host_network,
        ports: vitals.listeners,
    })
}

/// Start a container and return its details. `container_shell` runs commands inside.
///
/// A running container is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

async fn start(lxc: Arc<Lxc>, Start { container }: Start, cx: Cx) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.start(&container).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// How many seconds a container has to shut down by itself before it is killed. With a longer time, the answer
/// would come after most clients have given up.
pub type Grace = BoundedNumber<0, 40, 10>;

/// Stop a container: request a shutdown, force it after the grace period, and return its details. All its processes
/// end. `container_start` starts it again.
///
/// A stopped container is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stop {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// Seconds to wait for a clean shutdown, at most 40; 0 forces it at once.
    #[serde(default)]
    grace_s: Grace,
}

async fn stop(
    lxc: Arc<Lxc>,
    Stop { container, grace_s }: Stop,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.stop_as_job(&container, grace_s.seconds(), call_job(&cx))
        .await
        .map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Restart a container: stop it, start it and return its details. Whatever runs in it is interrupted. `container_info`
/// shows more.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restart {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// Seconds to wait for a clean shutdown, at most 40; 0 forces it at once.
    #[serde(default)]
    grace_s: Grace,
}

async fn restart(
    lxc: Arc<Lxc>,
    Restart { container, grace_s }: Restart,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.restart(&container, grace_s.seconds())
        .await
        .map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}
