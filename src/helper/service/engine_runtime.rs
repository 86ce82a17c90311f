//! Docker and Podman as container runtimes, also Docker inside LXC: their API for state and lists, the kernel for the rest.

use gatewren_base::config::RuntimeKind;
use gatewren_wire::operations::{ContainerAction, ContainerRef, OperationEnd, OperationRefusal};

use super::engine_facts::engine_facts;
use super::engine_image::print_image;
use super::engine_limits;
use super::engine_log::{self, WantedLines};
use super::inner_docker;
use super::runtime::{ContainerRuntime, FoundContainer, info_lines};
use super::stopped_files;
use crate::context::containers::{CommandEntry, ContainerRunState};
use crate::context::helper_context::HelperContext;
use crate::context::limits::GRACE_SECONDS;
use crate::context::operation_context::OperationContext;
use crate::engines::clients::refusal;
use crate::engines::podman_user::PodmanUser;
use crate::engines::{EngineApi, EngineChange, EngineContainerId, EngineError};
use crate::host::records;
use crate::lxc::files;
use crate::processes::commands::require_root;
use crate::processes::printing::print;
use crate::processes::step_error::StepError;

/// An engine.
#[derive(Debug, Clone, Copy)]
pub struct EngineRuntime {
    /// Which one.
    pub kind: RuntimeKind,
}

impl ContainerRuntime for EngineRuntime {
    async fn list(&self, helper: &HelperContext) -> Result<Vec<FoundContainer>, OperationRefusal> {
        require_root()?;
        if self.kind == RuntimeKind::DockerInLxc {
            let inner = inner_docker::list(helper).await?.containers;
            return Ok(inner.into_iter().map(FoundContainer::named).collect());
        }
        let api = helper.containers.engines.api(self.kind)?;
        let listed = api.list().await.map_err(|error| refusal(&error))?;
        // A name that is longer than a reference may be is left out.
        let found = listed.into_iter().filter_map(|listed| {
            Some(FoundContainer {
                name: ContainerRef::of(self.kind, &listed.name).ok()?,
                listed: Some(listed),
            })
        });
        Ok(found.collect())
    }

    async fn print_info(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, StepError> {
        let asked = ask(context, container).await?;
        let container = container.clone();
        let lines = move || state_lines(&container, &asked).map(String::into_bytes);
        Ok(print(context.relay, lines).await?)
    }

    async fn start(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
    ) -> Result<OperationEnd, StepError> {
        self.change(context, container, async |api, id| api.start(id).await)
            .await
    }

    async fn stop(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        grace_s: u32,
    ) -> Result<OperationEnd, StepError> {
        let grace_s = grace_s.min(GRACE_SECONDS);
        self.change(context, container, async |api, id| {
            api.stop(id, grace_s).await
        })
        .await
    }

    async fn act(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        action: &ContainerAction,
    ) -> Result<OperationEnd, StepError> {
        match action {
            ContainerAction::Freeze {} => {
                self.change(context, container, async |api, id| api.pause(id).await)
                    .await
            }
            ContainerAction::Unfreeze {} => {
                self.change(context, container, async |api, id| api.unpause(id).await)
                    .await
            }
            ContainerAction::Autostart { on } => {
                let limits = engine_limits::autostart(*on);
                self.change(context, container, async |api, id| {
                    api.update(id, limits).await.map(|_| EngineChange::Done)
                })
                .await
            }
            ContainerAction::Configure { changes } => {
                let limits = engine_limits::limits(changes)?;
                self.change(context, container, async |api, id| {
                    api.update(id, limits).await.map(|_| EngineChange::Done)
                })
                .await
            }
            ContainerAction::Image {} => print_image(context, container).await,
            ContainerAction::ListFiles { .. } | ContainerAction::ReadFile { .. } => {
                self.act_on_files(context, container, action).await
            }
            ContainerAction::Record { .. } | ContainerAction::MissingRecords {} => {
                Ok(records::act(context, container, action).await?)
            }
            ContainerAction::WriteFile { on_host, .. } => {
                let helper = context.helper;
                let alive = helper.containers.alive(container);
                let alive = context.relay.wait(alive).await??;
                alive.check_host_rights(container, &helper.policy.now(), *on_host)?;
                Ok(files::act(context, container, action).await?)
            }
            ContainerAction::Printed {
                lines,
                after,
                before,
            } => {
                let wanted = WantedLines {
                    lines: *lines,
                    after: after.as_ref(),
                    before: before.as_ref(),
                };
                engine_log::print_lines(context, container, &wanted).await
            }
            _ => Err(self.lacks().into()),
        }
    }
}

/// Returns the state of an engine's container in the format of `lxc-info`, with a line of the engine's facts.
///
/// # Errors
/// Fails if there is no such user as its place names.
pub fn state_lines(
    container: &ContainerRef,
    asked: &ContainerRunState,
) -> Result<String, OperationRefusal> {
    let user = match container.runtime() {
        RuntimeKind::Podman => container.place().map(PodmanUser::find).transpose()?,
        _ => None,
    };
    let facts_of = |engine| engine_facts(engine, container.runtime(), user.as_ref());
    let mut facts = asked.engine.as_ref().map(facts_of);
    if let (Some(facts), Some(running)) = (&mut facts, &asked.running) {
        // The kernel shows more of them than the engine.
        facts.host_rights.clone_from(&running.host_rights);
        if let CommandEntry::None(why) = &running.entry {
            facts.no_commands = Some(why.to_string());
        }
    }
    if let (Some(facts), Some(_)) = (&mut facts, &asked.unconfirmed) {
        facts.no_commands.clone_from(&asked.unconfirmed);
    }
    let facts = facts.and_then(|facts| serde_json::to_string(&facts).ok());
    let init = asked.running.as_ref().map(|running| running.init);
    let mut lines = info_lines(asked.state.as_deref().unwrap_or_default(), init);
    lines.extend(facts.map(|facts| format!("Engine: {facts}\n")));
    Ok(lines)
}

/// Returns the references of the containers of a user's Podman. A name that is longer than a reference may be is left
/// out.
///
/// # Errors
/// Fails if it does not answer.
pub async fn list_of_user(
    helper: &HelperContext,
    user: &str,
) -> Result<Vec<ContainerRef>, OperationRefusal> {
    require_root()?;
    let api = helper.containers.engines.api_of_user(user)?;
    let listed = api.list().await.map_err(|error| refusal(&error))?;
    let references = listed
        .iter()
        .map(|one| ContainerRef::of_user(user, &one.name));
    Ok(references.flatten().collect())
}

/// Asks the engine about a container.
async fn ask(
    context: &mut OperationContext<'_>,
    container: &ContainerRef,
) -> Result<ContainerRunState, StepError> {
    require_root()?;
    let asked = context.helper.containers.ask(container);
    Ok(context.relay.wait(asked).await??)
}

impl EngineRuntime {
    /// Changes the state of a container, which the engine knows by its full id.
    async fn change(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        change: impl AsyncFnOnce(&EngineApi, &EngineContainerId) -> Result<EngineChange, EngineError>,
    ) -> Result<OperationEnd, StepError> {
        require_root()?;
        let helper = context.helper;
        // A container whose files are being restored must not start.
        helper.locks.check_free(container)?;
        let changed = async {
            let api = helper.containers.api(container).await?;
            let id = helper.containers.inspect(container).await?.id;
            let changed = change(&api, &id).await;
            if container.place().is_none() {
                helper.containers.engines.kept(self.kind).forget(Some(&id));
            }
            changed.map_err(|error| refusal(&error))
        };
        context.relay.wait(changed).await??;
        Ok(OperationEnd::SUCCESS)
    }

    /// Lists or reads files: in the mounted root of a container that runs, or else through the engine.
    async fn act_on_files(
        &self,
        context: &mut OperationContext<'_>,
        container: &ContainerRef,
        action: &ContainerAction,
    ) -> Result<OperationEnd, StepError> {
        let asked = ask(context, container).await?;
        match asked.engine {
            Some(stopped) if !stopped.state.is_running && !stopped.state.is_paused => {
                stopped_files::act(context, container, &stopped, action).await
            }
            _ => Ok(files::act(context, container, action).await?),
        }
    }

    /// The refusal of what only LXC has.
    fn lacks(self) -> OperationRefusal {
        OperationRefusal::bad_command(format!(
            "this works for containers of LXC only; {} has nothing like it that gatewren uses",
            self.kind.title()
        ))
    }
}
