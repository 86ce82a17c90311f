//! Moves a container of LXC to another place: stops it, copies its files, starts it there, and undoes all of that if a
//! step fails. The old directory stays until another call removes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::config::HELPER_POLICY_FILE;
use gatewren_base::sys::Exit;
use gatewren_base::sys::source::text;
use gatewren_wire::operations::{
    ContainerRef, MovedContainer, Operation, OperationEnd, OperationRefusal, RefusalCode, StoreName,
};

use crate::context::helper_context::HelperContext;
use crate::context::lxc_tools::tool_for;
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::context::tools::{HostTool, run_to_end};
use crate::disk_space::measure::size_of;
use crate::lxc::definition;
use crate::lxc::paths::{require_plain_lxc, require_stopped};
use crate::lxc::relocation::{self, MoveRecord};
use crate::lxc::storage::{
    self, RootStorage, StorePlace, mounted_below, obstacle, places, root_in, root_storage,
};
use crate::processes::answers::{line, to_its_end};
use crate::processes::printing::print;
use crate::processes::staging_dir::StagingDir;
use crate::processes::step_error::StepError;

/// How long a moved container must run before the move counts as successful.
const TRIAL: Duration = Duration::from_secs(5);

/// How often its progress is read.
const LOOK: Duration = Duration::from_millis(500);

/// The directory of the root file system, in a stage.
const ROOT: &str = "rootfs";

/// A move that can begin.
struct PlannedMove {
    container: ContainerRef,
    /// The container's directory, with its definition.
    directory: PathBuf,
    config: PathBuf,
    record: MoveRecord,
    bytes: u64,
}

/// Moves a container and prints the result.
pub async fn move_to(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    to: &StoreName,
    grace_s: u32,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    require_plain_lxc(helper, container)?;
    let _claim = helper.locks.take(container)?;
    let plan = plan(context, container, to).await?;
    relocation::begin(&plan.directory, &plan.record)?;
    let moved = Box::pin(attempt(context, &plan, grace_s)).await;
    context.relay.set_uninterruptible(true);
    let settled = settle(helper, &plan.container).await;
    context.relay.set_uninterruptible(false);
    let moved = moved?;
    settled?;
    Ok(print(context.relay, move || Ok(line(&moved))).await?)
}

/// Removes the copy that the last move of a container left.
pub async fn remove_old(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let config = require_plain_lxc(helper, container)?;
    let _claim = helper.locks.take(container)?;
    let directory = helper.containers.definitions().directory(container);
    let old = relocation::old_copy(&directory).ok_or_else(|| {
        OperationRefusal::bad_command(format!(
            "no move has left a copy of container '{container}'"
        ))
    })?;
    let mut known = places(helper).into_iter();
    let is_known = known.any(|place| root_in(&place.path, container) == old);
    if !is_known || root_storage(&config) == RootStorage::Directory(old.clone()) {
        return Err(OperationRefusal::bad_command(format!(
            "{} is in use, or in none of the places for containers; the owner has to remove it",
            old.display()
        ))
        .into());
    }
    to_its_end(move || relocation::remove_old(&directory, &old)).await?;
    Ok(OperationEnd::SUCCESS)
}

/// Finishes or undoes the moves that were under way when an earlier helper died.
pub async fn settle_all(helper: Arc<HelperContext>) {
    let definitions = helper.containers.definitions().clone();
    for container in definitions.names().unwrap_or_default() {
        if relocation::under_way(&definitions.directory(&container)).is_none() {
            continue;
        }
        let Ok(_claim) = helper.locks.take(&container) else {
            continue;
        };
        match settle(&helper, &container).await {
            Ok(()) => tracing::warn!(%container, "an interrupted move was finished or undone"),
            Err(refusal) => {
                tracing::error!(%container, why = refusal.message, "an interrupted move remains");
            }
        }
    }
}

async fn plan(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    to: &StoreName,
) -> Result<PlannedMove, StepError> {
    let helper = context.helper;
    let config = helper.containers.definitions().file(container);
    let mut known = places(helper).into_iter();
    let place = known.find(|place| place.name == to.as_str());
    let place = place.ok_or_else(|| no_store(to))?;
    let storage = root_storage(&config);
    let bytes = match &storage {
        RootStorage::Directory(root) => {
            let root = root.to_string_lossy().into_owned();
            Some(
                context
                    .relay
                    .wait(size_of(&root, &helper.orphans))
                    .await??,
            )
        }
        RootStorage::Other(_) => None,
    };
    let (record, bytes) = check(&place, container, &storage, bytes)?;
    relocation::check_definition(&config, &record.from)?;
    let state = helper.containers.ask(container).await?;
    let was_running = state.running.is_some();
    if !was_running {
        require_stopped(helper, container).await?;
    }
    Ok(PlannedMove {
        directory: helper.containers.definitions().directory(container),
        container: container.clone(),
        config,
        record: MoveRecord {
            was_running,
            ..record
        },
        bytes,
    })
}

/// Checks that the container can be moved to a place.
fn check(
    place: &StorePlace,
    container: &ContainerRef,
    storage: &RootStorage,
    bytes: Option<u64>,
) -> Result<(MoveRecord, u64), OperationRefusal> {
    let table = text("/proc/self/mountinfo").unwrap_or_default();
    if let Some(obstacle) = obstacle(place, container, storage, bytes, &table) {
        return Err(OperationRefusal::bad_command(format!(
            "container '{container}' cannot be moved to '{}': {obstacle}",
            place.name
        )));
    }
    let (RootStorage::Directory(from), Some(bytes)) = (storage, bytes) else {
        return Err(OperationRefusal::failed("its size is unknown"));
    };
    if let Some(mount) = mounted_below(from, &table) {
        return Err(OperationRefusal::bad_command(format!(
            "{} is mounted in its files and would be copied; unmount it first",
            mount.display()
        )));
    }
    let record = MoveRecord {
        from: from.clone(),
        to: root_in(&place.path, container),
        store: place.path.clone(),
        was_running: false,
    };
    Ok((record, bytes))
}

fn no_store(name: &StoreName) -> OperationRefusal {
    OperationRefusal::new(
        RefusalCode::Forbidden,
        format!(
            "there is no place '{name}' for containers; container_stores in {HELPER_POLICY_FILE} lists them, which only \
             the owner of this server can change"
        ),
    )
}

/// Does the steps of a move. After an error, `settle` undoes those that were done.
async fn attempt(
    context: &mut OperationContext<'_>,
    plan: &PlannedMove,
    grace_s: u32,
) -> Result<MovedContainer, StepError> {
    let (helper, container, record) = (context.helper, &plan.container, &plan.record);
    if record.was_running {
        let stop = Operation::ContainerStop {
            container: container.clone(),
            grace_s,
        };
        run_lxc(helper, &stop).await?;
    }
    require_stopped(helper, container).await?;
    let stage = StagingDir::create_in(&record.store, container.as_str()).await?;
    let copied = copy(context, record, stage.path()).await;
    if let Err(error) = copied {
        stage.clear().await;
        return Err(error);
    }
    context.relay.set_uninterruptible(true);
    let (from, to) = (stage.path().join(ROOT), record.to.clone());
    let placed = to_its_end(move || relocation::place(&from, &to)).await;
    stage.clear().await;
    placed?;
    let (config, switched) = (plan.config.clone(), record.clone());
    let before = to_its_end(move || relocation::switch(&config, &switched)).await?;
    if record.was_running
        && let Err(refusal) = start_and_watch(helper, container).await
    {
        let kill = Operation::ContainerStop {
            container: container.clone(),
            grace_s: 0,
        };
        // It may have stopped by itself.
        let _ = run_lxc(helper, &kill).await;
        let config = plan.config.clone();
        to_its_end(move || definition::replace(&config, &before)).await?;
        return Err(OperationRefusal::failed(format!(
            "the moved container did not run, so the move was undone: {}",
            refusal.message
        ))
        .into());
    }
    let (directory, from) = (plan.directory.clone(), record.from.clone());
    to_its_end(move || relocation::keep_old(&directory, &from)).await?;
    Ok(MovedContainer {
        path: Some(record.to.display().to_string()),
        bytes: plan.bytes,
        runs: record.was_running,
        old_copy: Some(record.from.display().to_string()),
    })
}

/// Copies the files with owners, permissions, times, links, holes and all attributes, and has them written to the disk.
async fn copy(
    context: &mut OperationContext<'_>,
    record: &MoveRecord,
    stage: &Path,
) -> Result<(), StepError> {
    let target = stage.join(ROOT);
    make_target(context, &target).await?;
    let (from, to) = (
        format!("{}/.", record.from.display()),
        target.display().to_string(),
    );
    let what = "--preserve=mode,ownership,timestamps,links,xattr";
    let args = ["--archive", what, "--sparse=auto", "--", &from, &to];
    run(context, HostTool::new("cp", args)).await?;
    run(
        context,
        HostTool::new("sync", ["--file-system", to.as_str()]),
    )
    .await
}

/// Makes the directory of the copy: on btrfs a subvolume, if the program for it is there.
async fn make_target(context: &mut OperationContext<'_>, target: &Path) -> Result<(), StepError> {
    let table = text("/proc/self/mountinfo").unwrap_or_default();
    let is_btrfs = storage::filesystem_of(target, &table).as_deref() == Some("btrfs");
    let shown = target.display().to_string();
    if is_btrfs && find("btrfs").is_ok() {
        let args = ["subvolume", "create", shown.as_str()];
        return run(context, HostTool::new("btrfs", args)).await;
    }
    std::fs::create_dir(target)
        .map_err(|e| OperationRefusal::failed(format!("{shown} cannot be made: {e}")).into())
}

/// Runs a tool to its end; it is killed if the call has to end.
async fn run(context: &mut OperationContext<'_>, tool: HostTool) -> Result<(), StepError> {
    let (name, orphans) = (tool.name, context.helper.orphans.clone());
    let ended = context.relay.wait(run_to_end(tool, orphans.clone())).await;
    if ended.is_err() {
        // The tool was dropped; it must not write when its copy is removed.
        orphans.sweep();
    }
    let (exit, output) = ended??;
    Ok(check_exit(name, exit, &output)?)
}

/// Runs the tool of LXC for an operation to its end.
async fn run_lxc(
    helper: &Arc<HelperContext>,
    operation: &Operation,
) -> Result<(), OperationRefusal> {
    let tool = tool_for(operation, helper.containers.lxcpath());
    let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
    let name = tool.name;
    let (exit, output) = run_to_end(tool, helper.orphans.clone()).await?;
    check_exit(name, exit, &output)
}

fn check_exit(name: &str, exit: Exit, output: &str) -> Result<(), OperationRefusal> {
    /// The most characters of the program's output in an error.
    const SHOWN: usize = 400;
    if exit == Exit::Code(0) {
        return Ok(());
    }
    let output = gatewren_base::sys::shorten(output.trim(), SHOWN);
    Err(OperationRefusal::failed(format!("{name} failed: {output}")))
}

/// Starts a container, and checks that it keeps running.
async fn start_and_watch(
    helper: &Arc<HelperContext>,
    container: &ContainerRef,
) -> Result<(), OperationRefusal> {
    let start = Operation::ContainerStart {
        container: container.clone(),
    };
    run_lxc(helper, &start).await?;
    let running = helper.containers.alive(container).await?;
    for _ in 0..TRIAL.as_millis() / LOOK.as_millis() {
        sleep(LOOK).await;
        if !running.still_runs() {
            let seconds = TRIAL.as_secs();
            return Err(OperationRefusal::failed(format!(
                "it stopped within {seconds} seconds after its start"
            )));
        }
    }
    Ok(())
}

/// Brings a container to a definite state after a move that ended in any way: where its definition names the new
/// directory, the move is complete; otherwise the copy is removed. A container that ran is started.
async fn settle(
    helper: &Arc<HelperContext>,
    container: &ContainerRef,
) -> Result<(), OperationRefusal> {
    let definitions = helper.containers.definitions();
    let (directory, config) = (
        definitions.directory(container),
        definitions.file(container),
    );
    let Some(record) = relocation::under_way(&directory) else {
        return Ok(());
    };
    let is_moved = root_storage(&config) == RootStorage::Directory(record.to.clone());
    if is_moved {
        let (directory, from) = (directory.clone(), record.from.clone());
        to_its_end(move || relocation::keep_old(&directory, &from)).await?;
    } else {
        // A copy that was not put in place is in the stage.
        let stage = StagingDir::create_in(&record.store, container.as_str()).await?;
        stage.clear().await;
        let copy = record.clone();
        to_its_end(move || relocation::remove_copy(&copy)).await?;
    }
    let state = helper.containers.ask(container).await?;
    if record.was_running && state.running.is_none() {
        let start = Operation::ContainerStart {
            container: container.clone(),
        };
        run_lxc(helper, &start).await?;
    }
    to_its_end(move || relocation::end(&directory)).await
}
