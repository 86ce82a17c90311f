//! LXC as a container runtime: its tools, and the files that define its containers.

use gatewren_wire::operations::{
    ContainerAction, ContainerRef, Operation, OperationEnd, OperationRefusal,
};

use super::runtime::{ContainerRuntime, FoundContainer, info_lines};
use super::{container_move, container_storage};
use crate::context::helper_context::HelperContext;
use crate::context::lxc_tools::{freezer, tool_for};
use crate::context::operation_context::OperationContext;
use crate::context::programs::find;
use crate::host::records;
use crate::lxc::paths::existing;
use crate::lxc::start_errors::LogEnd;
use crate::lxc::{copies, definition, files, logs, snapshots};
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// LXC.
#[derive(Debug, Clone, Copy)]
pub struct LxcRuntime;

impl ContainerRuntime for LxcRuntime {
    async fn list(&self, helper: &HelperContext) -> Result<Vec<FoundContainer>, OperationRefusal> {
        require_root()?;
        // On a host without LXC, directories are not containers.
        find("lxc-start")?;
        let definitions = helper.containers.definitions();
        let names = definitions.names().map_err(|e| {
            let lxcpath = definitions.lxcpath().display();
            OperationRefusal::failed(format!("the containers in {lxcpath} cannot be listed: {e}"))
        })?;
        Ok(names.into_iter().map(FoundContainer::named).collect())
    }

    async fn print_info(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, StepError> {
        let helper = context.helper;
        let path = existing(helper, container)?;
        let asked = context
            .relay
            .wait(helper.containers.ask(container))
            .await??;
        let Some(state) = asked.state else {
            if !path.is_file() {
                return Err(helper.containers.absence_refusal(container).into());
            }
            // Runs lxc-info again, so that the caller gets its error message.
            let operation = Operation::ContainerInfo {
                container: container.clone(),
            };
            return run_tool(context, &operation).await;
        };
        let init = asked.running.map(|running| running.init);
        let lines = move || Ok(info_lines(&state, init).into_bytes());
        Ok(print(context.relay, lines).await?)
    }

    async fn start(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, StepError> {
        let config = existing(context.helper, container)?;
        context.helper.locks.check_free(container)?;
        let log = LogEnd::now(context.helper, &config, container);
        let container = container.clone();
        let end = run_tool(context, &Operation::ContainerStart { container }).await?;
        match end {
            OperationEnd::Exited { code: 0 } => Ok(end),
            // The tool itself only says that it failed.
            OperationEnd::Exited { .. } => match log.refusal() {
                Some(refusal) => Err(refusal.into()),
                None => Ok(end),
            },
            end => Ok(end),
        }
    }

    async fn stop(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        grace_s: u32,
    ) -> Result<OperationEnd, StepError> {
        let helper = context.helper;
        existing(helper, container)?;
        helper.locks.check_free(container)?;
        let asked = context
            .relay
            .wait(helper.containers.ask(container))
            .await??;
        if asked.running.is_some_and(|running| running.is_frozen()) {
            // A frozen container gets no signal: lxc-stop would wait until its timeout.
            let tool = freezer("lxc-unfreeze", container, helper.containers.lxcpath());
            context.run_tool(&tool).await?;
        }
        let container = container.clone();
        run_tool(context, &Operation::ContainerStop { container, grace_s }).await
    }

    async fn act(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        action: &ContainerAction,
    ) -> Result<OperationEnd, StepError> {
        let helper = context.helper;
        existing(helper, container)?;
        let done = match action {
            ContainerAction::Freeze {} => return freeze(context, container, "lxc-freeze").await,
            ContainerAction::Unfreeze {} => {
                return freeze(context, container, "lxc-unfreeze").await;
            }
            ContainerAction::Storage {} => {
                return Box::pin(container_storage::print_storage(context, container)).await;
            }
            ContainerAction::Move { to, grace_s } => {
                let moved = container_move::move_to(context, container, to, *grace_s);
                return Box::pin(moved).await;
            }
            ContainerAction::RemoveOldCopy {} => {
                return Box::pin(container_move::remove_old(context, container)).await;
            }
            ContainerAction::Autostart { on } => {
                definition::autostart(helper, container, *on).await
            }
            ContainerAction::Configure { changes } => {
                definition::configure(helper, container, changes).await
            }
            ContainerAction::Snapshots {} => snapshots::list(context, container).await,
            ContainerAction::Snapshot { comment } => {
                return snapshots::make(context, container, comment.as_deref()).await;
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
            ContainerAction::Record { .. } | ContainerAction::MissingRecords {} => {
                records::act(context, container, action).await
            }
            ContainerAction::Image {} => Err(OperationRefusal::bad_command(
                "a container of LXC has no image; this works for containers of Docker and Podman",
            )),
            file => files::act(context, container, file).await,
        };
        Ok(done?)
    }
}

async fn run_tool(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, StepError> {
    require_root()?;
    let tool = tool_for(operation, context.helper.containers.lxcpath());
    let tool = tool.ok_or_else(|| OperationRefusal::failed("unsupported operation"))?;
    Ok(context.run_tool(&tool).await?)
}

async fn freeze(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
    name: &'static str,
) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    helper.locks.check_free(container)?;
    context
        .relay
        .wait(helper.containers.alive(container))
        .await??;
    let tool = freezer(name, container, helper.containers.lxcpath());
    Ok(context.run_tool(&tool).await?)
}
