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
    house: &HelperContext,
    pump: &mut OutputRelay,
    operation: &Operation,
    processes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    match operation {
        Operation::ContainerDeed { container, deed } => {
            one(house, pump, (container, deed), processes).await
        }
        Operation::ContainerCreate { name, template } => {
            copies::create(house, pump, (name, template), processes).await
        }
        other => start_or_stop(house, pump, other).await,
    }
}

async fn start_or_stop(
    house: &HelperContext,
    pump: &mut OutputRelay,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    if let Some(container) = operation.container() {
        existing(house, container)?;
        house.claims.check_free(container)?;
    }
    let tool = tool_for(operation, house.containers.lxcpath());
    let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
    tools::carry(&tool, pump, &house.strays).await
}

async fn one(
    house: &HelperContext,
    pump: &mut OutputRelay,
    (container, deed): (&ContainerName, &ContainerAction),
    processes: u32,
) -> Result<OperationEnd, OperationRefusal> {
    existing(house, container)?;
    match deed {
        ContainerAction::Freeze {} => freeze(house, pump, container, "lxc-freeze").await,
        ContainerAction::Unfreeze {} => freeze(house, pump, container, "lxc-unfreeze").await,
        ContainerAction::Autostart { on } => definition::autostart(house, container, *on).await,
        ContainerAction::Configure { changes } => {
            definition::configure(house, container, changes).await
        }
        ContainerAction::Snapshots {} => snapshots::list(house, pump, container).await,
        ContainerAction::Snapshot { comment } => {
            snapshots::make(house, pump, (container, comment.as_deref()), processes).await
        }
        ContainerAction::Restore { snapshot } => {
            snapshots::restore(house, pump, (container, snapshot), processes).await
        }
        ContainerAction::Forget { snapshot } => {
            snapshots::forget(house, pump, (container, snapshot), processes).await
        }
        ContainerAction::Clone { to } => {
            copies::clone(house, pump, (container, to), processes).await
        }
        ContainerAction::Destroy { force, snapshots } => {
            copies::destroy(house, pump, (container, *force, *snapshots), processes).await
        }
        ContainerAction::Log { log, offset, bytes } => {
            logs::log(house, pump, container, (*log, *offset, *bytes)).await
        }
        ContainerAction::ListFiles { path, after, limit } => {
            let part = (after.clone(), *limit);
            files::list(house, pump, (container, path), part).await
        }
        ContainerAction::ReadFile {
            path,
            offset,
            bytes,
        } => files::read(house, pump, (container, path), (*offset, *bytes)).await,
        ContainerAction::WriteFile {
            path,
            content,
            mode,
        } => files::write(house, (container, path), content, *mode).await,
    }
}

async fn freeze(
    house: &HelperContext,
    pump: &mut OutputRelay,
    container: &ContainerName,
    name: &'static str,
) -> Result<OperationEnd, OperationRefusal> {
    house.claims.check_free(container)?;
    match pump.wait(house.containers.alive(container)).await {
        Ok(alive) => alive?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    let tool = freezer(name, container, house.containers.lxcpath());
    tools::carry(&tool, pump, &house.strays).await
}
