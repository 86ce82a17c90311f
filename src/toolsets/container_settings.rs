//! `container_*`: how containers are set, and what holds them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::failure::failed;
use crate::backends::{
    Changes, ContainerDefinition, ContainerDetails, ContainerName, HostName, Lxc,
};
use crate::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The group, as a table.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    Toolset::over(lxc)
        .named("containers")
        .tool("container_freeze", Risk::Disrupt, freeze)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcWrites)
        .titled("Freeze a container")
        .syncs_state()
        .tool("container_unfreeze", Risk::Write, unfreeze)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcWrites)
        .titled("Unfreeze a container")
        .syncs_state()
        .tool("container_autostart", Risk::Write, autostart)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcWrites)
        .titled("Start a container with the box")
        .syncs_state()
        .tool("container_config_get", Risk::Read, config_get)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("A container's settings")
        .tool("container_config_set", Risk::Persist, config_set)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Change a container's settings")
        .syncs_state()
}

/// Freezes a running container: all its processes stand still and keep their memory, until `container_unfreeze`.
/// Nothing in it answers meanwhile. One that is frozen already is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Freeze {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
}

async fn freeze(lxc: Arc<Lxc>, Freeze { container }: Freeze, cx: Cx) -> Result<ContainerDetails> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.set_frozen(&container, true).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Lets a frozen container go on where it stood still, and says how it stands. One that is not frozen is left as it
/// is. `container_freeze` froze it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Unfreeze {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
}

async fn unfreeze(
    lxc: Arc<Lxc>,
    Unfreeze { container }: Unfreeze,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.set_frozen(&container, false).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Sets whether a container starts when the box does, and says how it is set. Nothing is started or stopped now:
/// `container_start` and `container_stop` do that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Autostart {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// Whether it starts with the box.
    on: bool,
}

async fn autostart(
    lxc: Arc<Lxc>,
    Autostart { container, on }: Autostart,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.set_autostart(&container, on).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Shows what a container's definition says: host name, autostart, limits, networks, mounts and where its files are.
/// Only known keys are shown. `container_config_set` changes some of them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigGet {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
}

async fn config_get(
    lxc: Arc<Lxc>,
    ConfigGet { container }: ConfigGet,
    cx: Cx,
) -> Result<ContainerDefinition> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    lxc.definition(&container).await.map_err(failed)
}

/// Changes a container's settings and shows them all; what is not named stays. They count from its next start on
/// (`container_restart`). The definition before stays beside it as `config.old`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigSet {
    /// The container's name, as `container_list` shows it.
    container: ContainerName,
    /// Its own host name.
    hostname: Option<HostName>,
    /// The most memory that it may use, in bytes; 0 for no limit.
    memory_limit_bytes: Option<u64>,
    /// The most processor time that it may use, in percent of one processor; 0 for no limit.
    cpu_limit_percent: Option<u32>,
    /// The most processes that it may have; 0 for no limit.
    processes_limit: Option<u32>,
    /// Seconds to wait after its start before the next one starts with the box.
    start_delay_s: Option<u32>,
    /// Its place among those that start with the box, the highest first.
    start_order: Option<u32>,
}

async fn config_set(lxc: Arc<Lxc>, asked: ConfigSet, cx: Cx) -> Result<ContainerDefinition> {
    let lxc = lxc.seen_by(&cx.caller().reach, cx.reference());
    let container = asked.container;
    let changes = Changes {
        hostname: asked.hostname,
        memory_limit_bytes: asked.memory_limit_bytes,
        cpu_limit_percent: asked.cpu_limit_percent,
        processes_limit: asked.processes_limit,
        start_delay_s: asked.start_delay_s,
        start_order: asked.start_order,
    };
    lxc.configure(&container, changes).await.map_err(failed)?;
    lxc.definition(&container).await.map_err(failed)
}
