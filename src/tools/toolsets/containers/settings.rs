//! `container_*`: settings of containers, and freezing them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    ContainerDefinition, ContainerDetails, ContainerRef, DefinitionChanges, HostName, Lxc,
    limits_note,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    Toolset::new(lxc)
        .with_name("containers")
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
        .titled("Set container autostart")
        .syncs_state()
        .tool("container_config_get", Risk::Read, config_get)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Container settings")
        .tool("container_config_set", Risk::Persist, config_set)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Change container settings")
        .syncs_state()
}

/// Freeze a running container and return its details. Its processes pause and keep their memory until
/// `container_unfreeze`; nothing in it responds.
///
/// A frozen container is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Freeze {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

async fn freeze(lxc: Arc<Lxc>, Freeze { container }: Freeze, cx: Cx) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.set_frozen(&container, true).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Resume a frozen container and return its details. `container_freeze` freezes one.
///
/// A container that is not frozen is left as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Unfreeze {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

async fn unfreeze(
    lxc: Arc<Lxc>,
    Unfreeze { container }: Unfreeze,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.set_frozen(&container, false).await.map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Set whether a container starts at boot and return its details; in Docker and Podman this is its restart policy.
///
/// Nothing is started or stopped now: `container_start` and `container_stop` do that.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Autostart {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// Whether it starts when the host boots.
    #[serde(alias = "on")]
    enabled: bool,
}

async fn autostart(
    lxc: Arc<Lxc>,
    Autostart { container, enabled }: Autostart,
    cx: Cx,
) -> Result<ContainerDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.set_autostart(&container, enabled)
        .await
        .map_err(failed)?;
    lxc.info(&container).await.map_err(failed)
}

/// Show a container's configuration: host name, autostart, limits, networks, mounts and the location of its files.
/// `container_config_set` changes some of them.
///
/// Only known keys are shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigGet {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

async fn config_get(
    lxc: Arc<Lxc>,
    ConfigGet { container }: ConfigGet,
    cx: Cx,
) -> Result<ContainerDefinition> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.definition(&container).await.map_err(failed)
}

/// Change a container's settings and return all of them; omitted settings do not change. In LXC they apply at its next
/// start (`container_restart`). In Docker and Podman only memory and CPU can be changed, at once.
///
/// In LXC the old configuration is kept as `config.old`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigSet {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The container's host name.
    hostname: Option<HostName>,
    /// The memory limit in bytes; 0 for no limit.
    memory_limit_bytes: Option<u64>,
    /// The CPU limit in percent of one CPU; 0 for no limit.
    cpu_limit_percent: Option<u32>,
    /// The process limit; 0 for no limit.
    processes_limit: Option<u32>,
    /// Seconds to wait at boot after its start, before the next container starts.
    start_delay_s: Option<u32>,
    /// Its position in the start order at boot, highest first.
    start_order: Option<u32>,
}

async fn config_set(lxc: Arc<Lxc>, asked: ConfigSet, cx: Cx) -> Result<ContainerDefinition> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let container = asked.container;
    let changes = DefinitionChanges {
        hostname: asked.hostname,
        memory_limit_bytes: asked.memory_limit_bytes,
        cpu_limit_percent: asked.cpu_limit_percent,
        processes_limit: asked.processes_limit,
        start_delay_s: asked.start_delay_s,
        start_order: asked.start_order,
    };
    let note = limits_note(&container, &changes);
    lxc.configure(&container, changes).await.map_err(failed)?;
    let definition = lxc.definition(&container).await.map_err(failed)?;
    Ok(ContainerDefinition { note, ..definition })
}
