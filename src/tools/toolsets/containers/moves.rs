//! `container_storage`, `container_move`: where the files of a container are, and moving them to another disk.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use crate::toolsets::long_call::call_job;
use gatewren_host::backends::{ContainerRef, ContainerStorage, Lxc, MovedContainer, StoreName};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    Toolset::new(lxc)
        .with_name("containers")
        .tool("container_storage", Risk::Read, storage)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcReads)
        .titled("Storage of a container")
        .offers_task()
        .tool("container_move", Risk::Disrupt, relocate)
        .about(Scope::Container("container"))
        .through(HelperClass::LxcManage)
        .titled("Move a container to another disk")
        .long()
        .syncs_state()
}

/// Show where an LXC container's files are, how large they are, and the places where they could be, with their free
/// space. `container_move` moves them.
///
/// Fails for Docker and Podman, and lists no place that the owner has not named.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Storage {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
}

async fn storage(lxc: Arc<Lxc>, asked: Storage, cx: Cx) -> Result<ContainerStorage> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    lxc.storage(&asked.container).await.map_err(failed)
}

/// How many seconds a container has to shut down by itself before it is killed.
type Grace = BoundedNumber<0, 40, 10>;

/// Move an LXC container to a place of `container_storage`: it is stopped, copied and started again, and returns where
/// it is. The old copy stays until a call with `remove_old`.
///
/// If a step fails, it runs where it was. Not for LVM, ZFS, overlays and Proxmox.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Relocate {
    /// The container's name. `container_list` shows it.
    container: ContainerRef,
    /// The place, by its name. Give this or `remove_old`.
    to: Option<StoreName>,
    /// Only delete the copy that the last move left; this cannot be undone.
    #[serde(default)]
    remove_old: bool,
    /// Seconds to wait for a clean shutdown, at most 40; 0 forces it.
    #[serde(default)]
    grace_s: Grace,
}

#[derive(Serialize, JsonSchema)]
struct Relocated {
    /// The container's name.
    container: ContainerRef,
    /// What was moved; absent if only the old copy was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved: Option<MovedContainer>,
    /// Whether the old copy was deleted.
    old_copy_deleted: bool,
}

async fn relocate(lxc: Arc<Lxc>, asked: Relocate, cx: Cx) -> Result<Relocated> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let (container, job) = (asked.container, call_job(&cx));
    let moved = match (asked.to, asked.remove_old) {
        (Some(to), false) => {
            let grace = asked.grace_s.seconds();
            let moved = lxc.move_to(&container, to, grace, job).await;
            Some(moved.map_err(failed)?)
        }
        (None, true) => {
            let removed = lxc.remove_old_copy(&container, job).await;
            removed.map_err(failed)?;
            None
        }
        _ => {
            let words = "exactly one of `to` and `remove_old` is required";
            return Err(ToolError::new(words).hint("Nothing was done.").into());
        }
    };
    Ok(Relocated {
        container,
        old_copy_deleted: moved.is_none(),
        moved,
    })
}
