//! `disk_usage`, `disk_health`: disk usage by directory, and the health of the host's disks.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{DiskHealth, DiskUsage, HostDiskUsage, Storage};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(storage: Arc<Storage>, with_health: bool) -> Toolset<Storage> {
    let set = Toolset::new(storage)
        .with_name("storage")
        .tool("disk_usage", Risk::Read, usage)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Largest directories")
        .offers_task();
    if !with_health {
        return set;
    }
    set.tool("disk_health", Risk::Read, health)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Disk health")
        .offers_task()
}

/// Show the size of a host directory and its largest subdirectories, on its own file system. `disk_list` shows how full
/// file systems are.
///
/// Takes minutes on a large disk, and gives up after two: start deeper then.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Usage {
    /// The directory's absolute path, such as `/var`.
    path: String,
    /// Directory levels to show, 1 to 8.
    #[serde(default)]
    depth: BoundedNumber<1, 8, 2>,
    /// Maximum directories, 1 to 200.
    #[serde(default)]
    limit: BoundedNumber<1, 200, 30>,
}

async fn usage(storage: Arc<Storage>, asked: Usage, cx: Cx) -> Result<DiskUsage> {
    let request = HostDiskUsage {
        path: asked.path,
        depth: u8::try_from(asked.depth.get()).unwrap_or(1),
    };
    let most = asked.limit.get() as usize;
    let usage = storage.usage(request, most, &cx.caller().reach, cx.reference());
    usage.await.map_err(failed)
}

/// Show the health of the host's disks: SMART data (through smartctl; sleeping disks are not woken), and md, ZFS and
/// btrfs status. `disk_list` lists partitions and file systems.
///
/// `problems` describes faults in sentences; `unread` names what could not be examined.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Health {}

async fn health(storage: Arc<Storage>, Health {}: Health, cx: Cx) -> Result<DiskHealth> {
    storage.health(cx.reference()).await.map_err(failed)
}
