//! `disk_report`, `disk_cleanup`: what fills the disks, and deleting what can go.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolsets::failure::failed;
use crate::toolsets::long_call::call_job;
use gatewren_host::backends::{
    CleanupOrder, CleanupRequest, CleanupResult, DiskReport, DiskReports, MAX_CLEANUP_ITEMS,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(reports: Arc<DiskReports>) -> Toolset<DiskReports> {
    Toolset::new(reports)
        .with_name("storage")
        .tool("disk_report", Risk::Read, report)
        .about(Scope::Within)
        .through(HelperClass::HostReads)
        .or_through(HelperClass::LxcReads)
        .titled("What fills the disks")
        .offers_task()
        .tool("disk_cleanup", Risk::Disrupt, cleanup)
        .about(Scope::Within)
        .through(HelperClass::Cleanup)
        .titled("Free disk space")
        .long()
}

/// Show what fills the disks of the host and its containers: free space, largest directories, sizes of containers, and
/// `items` that can go, largest first. `disk_cleanup` deletes items.
///
/// Items are caches, journal, old kernels, core dumps, snapshots, unused volumes and images. Takes at most 25 s.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Report {}

async fn report(reports: Arc<DiskReports>, Report {}: Report, cx: Cx) -> Result<DiskReport> {
    let report = reports.report(&cx.caller().reach, cx.reference());
    report.await.map_err(failed)
}

/// Delete items of `disk_report` to free disk space; most cannot be undone. Copy `id` and `bytes` of each from the
/// report: what has grown since, or is in use now, stays.
///
/// Returns the freed bytes or the error of each item.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cleanup {
    /// What to delete.
    items: CleanupOrders,
}

/// 1 to 64 items.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "Vec<CleanupOrder>")]
#[schemars(with = "Vec<CleanupOrder>", description = "", extend("minItems" = 1, "maxItems" = MAX_CLEANUP_ITEMS))]
struct CleanupOrders(Vec<CleanupOrder>);

impl TryFrom<Vec<CleanupOrder>> for CleanupOrders {
    type Error = String;

    fn try_from(items: Vec<CleanupOrder>) -> std::result::Result<Self, String> {
        if (1..=MAX_CLEANUP_ITEMS).contains(&items.len()) {
            return Ok(Self(items));
        }
        Err(format!(
            "must have 1 to {MAX_CLEANUP_ITEMS} items, not {}",
            items.len()
        ))
    }
}

#[derive(Serialize, JsonSchema)]
struct Cleaned {
    /// The result of each item, in the order of the call.
    results: Vec<CleanupResult>,
    /// The freed space, in bytes.
    freed_bytes: u64,
}

async fn cleanup(reports: Arc<DiskReports>, Cleanup { items }: Cleanup, cx: Cx) -> Result<Cleaned> {
    let caller = cx.caller();
    let request = CleanupRequest {
        items: items.0,
        reach: caller.reach.clone(),
        agent: caller.agent.to_string(),
        reference: cx.reference().to_string(),
    };
    let results = reports.clean(request, call_job(&cx)).await;
    let results = results.map_err(failed)?;
    let freed_bytes = results.iter().map(|result| result.freed_bytes).sum();
    let errors: Vec<&str> = results
        .iter()
        .filter_map(|one| one.error.as_deref())
        .collect();
    if errors.len() == results.len() {
        let first = errors.first().copied().unwrap_or_default();
        return Err(ToolError::new(format!("nothing was deleted: {first}")).into());
    }
    Ok(Cleaned {
        results,
        freed_bytes,
    })
}
