//! `container_*`: LXC containers, looked at, started and stopped.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{failure::failed, number::Number};
use crate::backends::{ContainerDetails, ContainerName, Lxc};
use crate::registry::{Cx, Result, Risk, Toolset};

/// The group, as a table.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    const ID: &[(&str, &str)] = &[("id", "container")];
    Toolset::over(lxc)
        .tool("container_list", Risk::Read, list)
        .titled("List containers")
        .startos("package.list", &[])
        .tool("container_info", Risk::Read, info)
        .titled("About a container")
        .startos("package.installed-version", ID)
        .tool("container_start", Risk::Write, start)
        .titled("Start a container")
        .startos("package.start", ID)
        .syncs_state()
        .tool("container_stop", Risk::Disrupt, stop)
        .titled("Stop a container")
        .startos("package.stop", ID)
        .syncs_state()
        .tool("container_restart", Risk::Disrupt, restart)
        .titled("Restart a container")
        .startos("package.restart", ID)
        .syncs_state()
}

/// Lists the LXC containers with state, addresses, operating system, autostart, memory and CPU use.
/// `container_info` tells more of one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Containers {
    /// Sorted by name.
    containers: Vec<ContainerDetails>,
}

async fn list(lxc: Arc<Lxc>, List {}: List, cx: Cx) -> Result<Containers> {
    let lxc = lxc.named(cx.reference());
    Ok(Containers {
        containers: lxc.all().await.map_err(failed)?,
    })
}

/// Describes one container: state, init process, addresses, operating system, autostart, memory, CPU
/// and processes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Info {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
}

async fn info(lxc: Arc<Lxc>, Info { container }: Info, cx: Cx) -> Result<ContainerDetails> {
    let lxc = lxc.named(cx.reference());
    lxc.info(&container).await.map_err(failed)
}

/// Starts a container and says how it stands afterwards. One that runs already is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
}

async fn start(lxc: Arc<Lxc>, Start { container }: Start, cx: Cx) -> Result<ContainerDetails> {
    let lxc = lxc.named(cx.reference());
    lxc.start(&container).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// How long a container is asked to end by itself before it is forced to. Longer, and the answer would
/// come after most clients have given up.
type Grace = Number<0, 40, 10>;

/// Stops a container: asks it to shut down, and forces it when the grace is over. Whatever runs in it
/// ends. One that is stopped already is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stop {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// Seconds to wait for an orderly end, at most 40; 0 forces at once.
    #[serde(default)]
    grace_s: Grace,
}

async fn stop(
    lxc: Arc<Lxc>,
    Stop { container, grace_s }: Stop,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.named(cx.reference());
    lxc.stop(&container, grace_s.seconds())
        .await
        .map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Stops a container and starts it again. Whatever runs in it is interrupted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restart {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// Seconds to wait for an orderly end, at most 40; 0 forces at once.
    #[serde(default)]
    grace_s: Grace,
}

async fn restart(
    lxc: Arc<Lxc>,
    Restart { container, grace_s }: Restart,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.named(cx.reference());
    lxc.restart(&container, grace_s.seconds())
        .await
        .map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}
