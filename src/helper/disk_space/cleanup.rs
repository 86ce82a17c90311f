//! Deletes the items of a report, one by one: only those that are still as the report showed them.

use std::fs;
use std::sync::Arc;

use gatewren_base::config::{HelperClass, RuntimeKind};
use gatewren_wire::operations::{
    CLEANUP_MARK, CleanupItem, CleanupOrder, CleanupResult, ContainerRef, DiskCleanup,
    KernelRelease, MAX_CLEANUP_ITEMS, OperationEnd, OperationRefusal, RefusalCode, SnapshotName,
};

use super::host_items::{APT_CACHE, JOURNAL, JOURNAL_KEPT, apt_cache, dump, journal};
use super::kernels::old_kernels;
use super::measure::size_of;
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::context::tools::{HostTool, run_to_end};
use crate::engines::clients::refusal;
use crate::engines::{EngineApi, EngineSizes, ImageId};
use crate::host::updates::purge;
use crate::lxc::snapshots::{forget, snapshot_paths};
use crate::processes::answers::line;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use gatewren_base::sys::{Exit, shorten};

/// How much larger than ordered an item may be: a quarter, and this many bytes. A larger one is another one than was
/// approved.
const GROWTH: u64 = 16 << 20;

/// The most characters of an item's error.
const ERROR_CHARS: usize = 200;

/// Deletes items and prints the result of each. An item that cannot be deleted does not stop the others.
pub async fn perform(
    context: &mut OperationContext<'_>,
    order: &DiskCleanup,
) -> Result<OperationEnd, OperationRefusal> {
    require_root()?;
    let orders = &order.items;
    if orders.is_empty() || orders.len() > MAX_CLEANUP_ITEMS {
        return Err(OperationRefusal::bad_command(format!(
            "1 to {MAX_CLEANUP_ITEMS} items can be deleted at once, not {}",
            orders.len()
        )));
    }
    let mut results = Vec::new();
    for item in orders {
        if let Err(why) = context.relay.wait(std::future::ready(())).await {
            return Ok(OperationEnd::Killed { why });
        }
        let deleted = delete(context, item, &order.agent).await;
        results.push(CleanupResult {
            id: item.id.clone(),
            freed_bytes: deleted.as_ref().copied().unwrap_or(0),
            error: deleted
                .err()
                .map(|refusal| shorten(&refusal.message, ERROR_CHARS)),
        });
    }
    let printed = [CLEANUP_MARK.as_bytes(), &line(&results)].concat();
    print(context.relay, move || Ok(printed)).await
}

/// Deletes an item, and returns the freed bytes.
async fn delete(
    context: &mut OperationContext<'_>,
    order: &CleanupOrder,
    agent: &str,
) -> Result<u64, OperationRefusal> {
    let helper = context.helper;
    match &order.id {
        CleanupItem::AptCache => {
            check_size(order, apt_cache(&helper.orphans).await?.bytes)?;
            clear(helper, HostTool::new("apt-get", ["clean"]), APT_CACHE).await
        }
        CleanupItem::Journal => {
            check_size(order, journal(&helper.orphans).await?.bytes)?;
            let most = format!("--vacuum-size={JOURNAL_KEPT}");
            let tool = HostTool::new("journalctl", ["--quiet", most.as_str()]);
            clear(helper, tool, JOURNAL).await
        }
        CleanupItem::CoreDump(path) => {
            let dump = dump(path.clone()).ok_or_else(gone)?;
            check_size(order, dump.bytes)?;
            fs::remove_file(path.as_str())
                .map_err(|e| OperationRefusal::failed(format!("it cannot be deleted: {e}")))?;
            Ok(dump.bytes)
        }
        CleanupItem::OldKernel(release) => delete_kernel(context, order, release, agent).await,
        CleanupItem::Snapshot {
            container,
            snapshot,
        } => delete_snapshot(context, order, container, snapshot).await,
        CleanupItem::Volume { engine, name } => {
            let (api, sizes) = engine_sizes(helper, *engine).await?;
            let mut unused = sizes.volumes.iter();
            let volume = unused.find(|volume| volume.name == name.as_str());
            let bytes = volume.ok_or_else(used_or_gone)?.bytes;
            check_size(order, bytes)?;
            let deleted = api.delete_volume(name.as_str()).await;
            deleted.map_err(|e| refusal(&e)).map(|()| bytes)
        }
        CleanupItem::Image { engine, id } => {
            let (api, sizes) = engine_sizes(helper, *engine).await?;
            let id = ImageId::parse(id.as_str()).ok_or_else(used_or_gone)?;
            let image = sizes.images.iter().find(|image| image.id == id);
            let bytes = image.ok_or_else(used_or_gone)?.bytes;
            check_size(order, bytes)?;
            let deleted = api.delete_image(&id).await;
            deleted.map_err(|e| refusal(&e)).map(|()| bytes)
        }
        CleanupItem::BuildCache { engine } => {
            let (api, sizes) = engine_sizes(helper, *engine).await?;
            check_size(order, sizes.unused_cache_bytes)?;
            api.prune_build_cache().await.map_err(|e| refusal(&e))
        }
    }
}

/// Rejects an item that is larger than ordered.
fn check_size(order: &CleanupOrder, bytes: u64) -> Result<(), OperationRefusal> {
    let most = order
        .bytes
        .saturating_add(order.bytes / 4)
        .saturating_add(GROWTH);
    if bytes <= most {
        return Ok(());
    }
    Err(OperationRefusal::bad_command(format!(
        "it has {bytes} bytes now, and {} were ordered: it has changed; call disk_report again",
        order.bytes
    )))
}

fn gone() -> OperationRefusal {
    OperationRefusal::bad_command("it does not exist any more; call disk_report again")
}

fn used_or_gone() -> OperationRefusal {
    OperationRefusal::bad_command(
        "it is in use, or does not exist any more; call disk_report again",
    )
}

/// Runs a tool that clears a cache to its end, and returns how much smaller the directory is.
async fn clear(
    helper: &Arc<HelperContext>,
    tool: HostTool,
    directory: &str,
) -> Result<u64, OperationRefusal> {
    let name = tool.name;
    let before = size_of(directory, &helper.orphans).await?;
    // In its own task: a tool that deletes is not killed halfway when the caller disconnects.
    let cleared = tokio::spawn(run_to_end(tool, helper.orphans.clone())).await;
    let cleared =
        cleared.map_err(|e| OperationRefusal::failed(format!("{name} was aborted: {e}")))?;
    let (exit, report) = cleared?;
    if exit != Exit::Code(0) {
        let report = report.trim();
        return Err(OperationRefusal::failed(format!("{name} failed: {report}")));
    }
    let after = size_of(directory, &helper.orphans).await?;
    Ok(before.saturating_sub(after))
}

async fn delete_kernel(
    context: &mut OperationContext<'_>,
    order: &CleanupOrder,
    release: &KernelRelease,
    agent: &str,
) -> Result<u64, OperationRefusal> {
    let helper = context.helper;
    require_class(helper, HelperClass::UpdatesApply)?;
    let old = old_kernels(&helper.orphans).await?;
    let kernel = old.into_iter().find(|kernel| kernel.release == *release);
    let kernel = kernel.ok_or_else(|| {
        OperationRefusal::bad_command(
            "it is not installed, or it is the running or the newest kernel",
        )
    })?;
    check_size(order, kernel.bytes)?;
    let ending = purge(context, &kernel.packages, agent).await?;
    match ending {
        OperationEnd::Exited { code: 0 } => Ok(kernel.bytes),
        _ => Err(OperationRefusal::failed(
            "apt did not remove it; update_history and the host's log show why",
        )),
    }
}

async fn delete_snapshot(
    context: &mut OperationContext<'_>,
    order: &CleanupOrder,
    container: &ContainerRef,
    snapshot: &SnapshotName,
) -> Result<u64, OperationRefusal> {
    let helper = context.helper;
    if !helper.policy.now().allows_container(container.as_str()) {
        // As if it did not exist.
        return Err(helper.containers.absence_refusal(container));
    }
    require_class(helper, HelperClass::LxcManage)?;
    crate::lxc::paths::require_plain_lxc(helper, container)?;
    let directory = helper.containers.definitions().directory(container);
    let mut found = snapshot_paths(&directory).into_iter();
    let found = found.find(|one| one.snapshot == *snapshot);
    let path = found.ok_or_else(gone)?.path.to_string_lossy().into_owned();
    let bytes = size_of(&path, &helper.orphans).await?;
    check_size(order, bytes)?;
    match forget(context, container, snapshot).await? {
        OperationEnd::Exited { code: 0 } => Ok(bytes),
        _ => Err(OperationRefusal::failed(
            "LXC did not delete the snapshot; container_snapshot_list shows whether it is complete",
        )),
    }
}

/// Rejects an item that needs another class than the operation.
fn require_class(helper: &HelperContext, class: HelperClass) -> Result<(), OperationRefusal> {
    if helper.policy.now().allows(class) {
        return Ok(());
    }
    Err(OperationRefusal::new(
        RefusalCode::Forbidden,
        format!("deleting this also needs {class} in helper.toml, which only the owner can change"),
    ))
}

/// Reads what an engine keeps, if agents may see all of its containers.
async fn engine_sizes(
    helper: &HelperContext,
    engine: RuntimeKind,
) -> Result<(EngineApi, EngineSizes), OperationRefusal> {
    if !helper.policy.now().shows_all_containers() {
        return Err(used_or_gone());
    }
    let api = helper.containers.engines.api(engine)?;
    let sizes = api.sizes().await.map_err(|e| refusal(&e))?;
    Ok((api, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_grown_since_the_report_is_not_what_was_approved() {
        let order = |bytes| CleanupOrder {
            id: CleanupItem::AptCache,
            bytes,
        };
        assert!(check_size(&order(100 << 20), 120 << 20).is_ok());
        assert!(check_size(&order(100 << 20), 1 << 20).is_ok());
        assert!(check_size(&order(0), 16 << 20).is_ok());
        let grown = check_size(&order(1), 5 << 30).unwrap_err();
        assert!(grown.message.contains("it has changed"), "{grown}");
    }
}
