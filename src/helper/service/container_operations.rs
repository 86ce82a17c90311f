//! Dispatches the operations on a container to the modules that perform them.

use gatewren_wire::operations::{ContainerName, Deed, Ending, Operation};

use crate::context::helper_context::House;
use crate::context::lxc_tools::{freezer, tool_for};
use crate::context::output_relay::Pump;
use crate::context::refusal::Refusal;
use crate::context::tools;
use crate::lxc::paths::existing;
use crate::lxc::{copies, definition, files, logs, snapshots};

/// Performs the operation; `processes` limits the processes of what it runs.
pub async fn perform(
    house: &House,
    pump: &mut Pump,
    operation: &Operation,
    processes: u32,
) -> Result<Ending, Refusal> {
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
    house: &House,
    pump: &mut Pump,
    operation: &Operation,
) -> Result<Ending, Refusal> {
    if let Some(container) = operation.container() {
        existing(house, container)?;
        house.claims.check_free(container)?;
    }
    let tool = tool_for(operation, house.containers.lxcpath());
    let tool = tool.ok_or_else(|| Refusal::failed("unsupported operation"))?;
    tools::carry(&tool, pump, &house.strays).await
}

async fn one(
    house: &House,
    pump: &mut Pump,
    (container, deed): (&ContainerName, &Deed),
    processes: u32,
) -> Result<Ending, Refusal> {
    existing(house, container)?;
    match deed {
        Deed::Freeze {} => freeze(house, pump, container, "lxc-freeze").await,
        Deed::Unfreeze {} => freeze(house, pump, container, "lxc-unfreeze").await,
        Deed::Autostart { on } => definition::autostart(house, container, *on).await,
        Deed::Configure { changes } => definition::configure(house, container, changes).await,
        Deed::Snapshots {} => snapshots::list(house, pump, container).await,
        Deed::Snapshot { comment } => {
            snapshots::make(house, pump, (container, comment.as_deref()), processes).await
        }
        Deed::Restore { snapshot } => {
            snapshots::restore(house, pump, (container, snapshot), processes).await
        }
        Deed::Forget { snapshot } => {
            snapshots::forget(house, pump, (container, snapshot), processes).await
        }
        Deed::Clone { to } => copies::clone(house, pump, (container, to), processes).await,
        Deed::Destroy { force, snapshots } => {
            copies::destroy(house, pump, (container, *force, *snapshots), processes).await
        }
        Deed::Log { log, offset, bytes } => {
            logs::log(house, pump, container, (*log, *offset, *bytes)).await
        }
        Deed::ListFiles { path, after, limit } => {
            let part = (after.clone(), *limit);
            files::list(house, pump, (container, path), part).await
        }
        Deed::ReadFile {
            path,
            offset,
            bytes,
        } => files::read(house, pump, (container, path), (*offset, *bytes)).await,
        Deed::WriteFile {
            path,
            content,
            mode,
        } => files::write(house, (container, path), content, *mode).await,
    }
}

async fn freeze(
    house: &House,
    pump: &mut Pump,
    container: &ContainerName,
    name: &'static str,
) -> Result<Ending, Refusal> {
    house.claims.check_free(container)?;
    match pump.wait(house.containers.alive(container)).await {
        Ok(alive) => alive?,
        Err(why) => return Ok(Ending::Killed { why }),
    };
    let tool = freezer(name, container, house.containers.lxcpath());
    tools::carry(&tool, pump, &house.strays).await
}
