//! Dispatches the operations on a container to the modules that perform them.

use gatewren_wire::operations::{
    ContainerAction, ContainerRef, Operation, OperationEnd, OperationRefusal,
};

use crate::context::lxc_tools::{freezer, tool_for};
use crate::context::operation_context::OperationContext;
use crate::lxc::paths::existing;
use crate::lxc::{copies, definition, files, logs, snapshots};

/// Performs the operation.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    match operation {
        Operation::ContainerAction { container, action } => {
            act_on_container(context, container, action).await
        }
        Operation::ContainerCreate { name, template } => {
            copies::create(context, name, template).await
        }
        other => start_or_stop(context, other).await,
    }
}

async fn start_or_stop(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    if let Some(container) = operation.container() {
        existing(helper, container)?;
        helper.locks.check_free(container)?;
    }
    let tool = tool_for(operation, helper.containers.lxcpath());
    let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
    context.run_tool(&tool).await
}

async fn act_on_container(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    action: &ContainerAction,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    existing(helper, container)?;
    match action {
        ContainerAction::Freeze {} => freeze(context, container, "lxc-freeze").await,
        ContainerAction::Unfreeze {} => freeze(context, container, "lxc-unfreeze").await,
        ContainerAction::Autostart { on } => definition::autostart(helper, container, *on).await,
        ContainerAction::Configure { changes } => {
            definition::configure(helper, container, changes).await
        }
        ContainerAction::Snapshots {} => snapshots::list(context, container).await,
        ContainerAction::Snapshot { comment } => {
            snapshots::make(context, container, comment.as_deref()).await
        }
        ContainerAction::Restore { snapshot } => {
            snapshots::restore(context, container, snapshot).await
        }
        ContainerAction::Forget { snapshot } => {
            snapshots::forget(context, container, snapshot).await
        }
        ContainerAction::Clone { to } => copies::clone(context, container, to).await,
        ContainerAction::Destroy { force, snapshots } => {
            copies::destroy(context, container, *force, *snapshots).await
        }
        ContainerAction::Log { log, offset, bytes } => {
            logs::log(context, container, *log, *offset, *bytes).await
        }
        ContainerAction::ListFiles { path, after, limit } => {
            files::list(context, container, path, after.clone(), *limit).await
        }
        ContainerAction::ReadFile {
            path,
            offset,
            bytes,
        } => files::read(context, container, path, *offset, *bytes).await,
        ContainerAction::WriteFile {
            path,
            content,
            mode,
        } => files::write(helper, container, path, content, *mode).await,
    }
}

async fn freeze(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    name: &'static str,
) -> Result<OperationEnd, OperationRefusal> {
    let helper = context.helper;
    helper.locks.check_free(container)?;
    match context.relay.wait(helper.containers.alive(container)).await {
        Ok(alive) => alive?,
        Err(why) => return Ok(OperationEnd::Killed { why }),
    };
    let tool = freezer(name, container, helper.containers.lxcpath());
    context.run_tool(&tool).await
}
