//! Dispatches the operations on a container to the modules that perform them.

use gatewren_wire::operations::{ContainerAction, ContainerName, Operation, OperationEnd};

use crate::context::helper_context::HelperContext;
use crate::context::lxc_tools::{freezer, tool_for};
use crate::context::output_relay::OutputRelay;
use crate::context::refusal::OperationRefusal;
use crate::context::tools;
use crate::lxc::paths::existing;
use crate::lxc::{copies, definition, files, logs, snapshots};

/// Performs the operation; `processes` limits the processes of what it runs.
pub async fn perform(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    operation: &Operation,
    processes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    match operation {
        Operation::ContainerDeed { container, deed } => {
            one(helper, relay, (container, deed), processes).await
        }
        Operation::ContainerCreate { name, template } => {
            copies::create(helper, relay, (name, template), processes).await
        }
        other => start_or_stop(helper, relay, other).await,
    }
}

async fn start_or_stop(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    if let Some(container) = operation.container() {
        existing(helper, container)?;
        helper.locks.check_free(container)?;
    }
    let tool = tool_for(operation, helper.containers.lxcpath());
    let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
    tools::carry(&tool, relay, &helper.orphans).await
}

async fn one(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    (container, deed): (&ContainerName, &ContainerAction),
    processes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    existing(helper, container)?;
    match deed {
        ContainerAction::Freeze {} => freeze(helper, relay, container, "lxc-freeze").await,
        ContainerAction::Unfreeze {} => freeze(helper, relay, container, "lxc-unfreeze").await,
        ContainerAction::Autostart { on } => definition::autostart(helper, container, *on).await,
        ContainerAction::Configure { changes } => {
            definition::configure(helper, container, changes).await
        }
        ContainerAction::Snapshots {} => snapshots::list(helper, relay, container).await,
        ContainerAction::Snapshot { comment } => {
            snapshots::make(helper, relay, (container, comment.as_deref()), processes).await
        }
        ContainerAction::Restore { snapshot } => {
            snapshots::restore(helper, relay, (container, snapshot), processes).await
        }
        ContainerAction::Forget { snapshot } => {
            snapshots::forget(helper, relay, (container, snapshot), processes).await
        }
        ContainerAction::Clone { to } => {
            copies::clone(helper, relay, (container, to), processes).await
        }
        ContainerAction::Destroy { force, snapshots } => {
            copies::destroy(helper, relay, (container, *force, *snapshots), processes).await
        }
        ContainerAction::Log { log, offset, bytes } => {
            logs::log(helper, relay, container, (*log, *offset, *bytes)).await
        }
        ContainerAction::ListFiles { path, after, limit } => {
            let part = (after.clone(), *limit);
            files::list(helper, relay, (container, path), part).await
        }
        ContainerAction::ReadFile {
            path,
            offset,
            bytes,
        } => files::read(helper, relay, (container, path), (*offset, *bytes)).await,
        ContainerAction::WriteFile {
            path,
            content,
            mode,
        } => files::write(helper, (container, path), content, *mode).await,
    }
}

async fn freeze(
    helper: &HelperContext,
    relay: &mut OutputRelay,
    container: &ContainerName,
    name: &'static str,
) -> Result<OperationEnd, OperationRefusal> {
    helper.locks.check_free(container)?;
    match relay.wait(helper.containers.alive(container)).await {
        Ok(alive) => alive?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    let tool = freezer(name, container, helper.containers.lxcpath());
    tools::carry(&tool, relay, &helper.orphans).await
}
