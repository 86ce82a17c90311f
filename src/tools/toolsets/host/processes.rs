//! `server_processes`: the processes with the highest CPU or memory usage.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::toolsets::bounded_number::BoundedNumber;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{ProcessOrder, Processes, TopProcesses};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, Toolset};

/// The toolset.
pub fn tools(processes: Arc<Processes>) -> Toolset<Processes> {
    Toolset::new(processes)
        .with_name("server")
        .tool("server_processes", Risk::Read, top)
        .about(Scope::Host)
        .through(HelperClass::HostReads)
        .titled("Top processes")
}

/// List the host's processes that use the most CPU, measured over a third of a second, or memory. `container_stats`
/// sums up containers, `unit_status` a unit.
///
/// Each has its user, command line, age, and container or systemd unit. Includes processes in containers. Secrets in
/// command lines are left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Top {
    /// The sort order.
    #[serde(default, alias = "order")]
    sort_by: ProcessOrder,
    /// Maximum, 1 to 50.
    #[serde(default)]
    limit: BoundedNumber<1, 50, 15>,
}

async fn top(
    processes: Arc<Processes>,
    Top { sort_by, limit }: Top,
    cx: Cx,
) -> Result<TopProcesses> {
    let processes = processes.view_for(&cx.caller().reach, cx.reference());
    let most = usize::try_from(limit.get()).unwrap_or(1);
    processes.top(sort_by, most).await.map_err(failed)
}
