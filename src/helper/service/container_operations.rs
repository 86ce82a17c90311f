//! Dispatches the operations on containers to their runtimes.

use std::fmt::Write as _;

use gatewren_base::config::{HelperPolicy, RuntimeKind};
use gatewren_wire::operations::{
    ContainerRef, Operation, OperationEnd, OperationRefusal, RefusalCode,
};

use super::engine_runtime::{EngineRuntime, list_of_user};
use super::inner_docker::{self, AwayDaemon, InnerListing};
use super::lxc_runtime::LxcRuntime;
use super::runtime::{ContainerRuntime, FoundContainer};
use crate::context::helper_context::HelperContext;
use crate::context::operation_context::OperationContext;
use crate::lxc::copies;
use crate::processes::printing::print;
use crate::processes::step_error::{StepError, step_end};

/// The mark before a runtime that did not answer, in the list of containers.
const AWAY: char = '!';

/// Performs the operation.
pub async fn perform(
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, OperationRefusal> {
    if let Operation::ContainerCreate { name, template } = operation {
        return copies::create(context, name, template).await;
    }
    match operation.container().map(ContainerRef::runtime) {
        Some(RuntimeKind::Lxc) => step_end(perform_in(&LxcRuntime, context, operation).await),
        Some(kind) => step_end(perform_in(&EngineRuntime { kind }, context, operation).await),
        None => Err(unsupported()),
    }
}

async fn perform_in(
    runtime: &impl ContainerRuntime,
    context: &mut OperationContext<'_>,
    operation: &Operation,
) -> Result<OperationEnd, StepError> {
    match operation {
        Operation::ContainerInfo { container } => runtime.print_info(context, container).await,
        Operation::ContainerStart { container } => runtime.start(context, container).await,
        Operation::ContainerStop { container, grace_s } => {
            runtime.stop(context, container, *grace_s).await
        }
        Operation::ContainerAction { container, action } => {
            runtime.act(context, container, action).await
        }
        _ => Err(unsupported().into()),
    }
}

/// Prints the references of the containers that may be seen, and a line `!RUNTIME WHY` for each runtime that did not
/// answer, `!RUNTIME@PLACE WHY` where it did not answer in one place. If it is the only one that is served, that is an
/// error.
pub async fn list(context: &mut OperationContext<'_>) -> Result<OperationEnd, StepError> {
    let helper = context.helper;
    let policy = helper.policy.now();
    let FoundContainers { containers, away } =
        context.relay.wait(find_all(helper, &policy)).await??;
    let names = containers.iter().flat_map(|one| [one.name.as_str(), "\n"]);
    let lines: String = names.collect::<String>() + &away;
    Ok(print(context.relay, move || Ok(lines.into_bytes())).await?)
}

/// The containers of all runtimes.
#[derive(Default)]
pub struct FoundContainers {
    /// Those that may be seen.
    pub containers: Vec<FoundContainer>,
    /// A line for each runtime that did not answer.
    pub away: String,
}

/// Asks each runtime for its containers, and keeps those that may be seen.
///
/// # Errors
/// Fails if the only runtime that is served did not answer.
pub async fn find_all(
    helper: &HelperContext,
    policy: &HelperPolicy,
) -> Result<FoundContainers, OperationRefusal> {
    let served: Vec<RuntimeKind> = RuntimeKind::ALL
        .into_iter()
        .filter(|kind| policy.serves(*kind))
        .collect();
    // Docker inside LXC is nowhere without LXC.
    let alone = served
        .iter()
        .filter(|kind| **kind != RuntimeKind::DockerInLxc);
    let is_one = alone.count() == 1 && policy.podman_users.is_empty();
    let mut found = FoundContainers::default();
    for kind in &served {
        let listed = match kind {
            RuntimeKind::Lxc => LxcRuntime.list(helper).await,
            RuntimeKind::Docker | RuntimeKind::Podman => {
                EngineRuntime { kind: *kind }.list(helper).await
            }
            RuntimeKind::DockerInLxc => match inner_docker::list(helper).await {
                Ok(InnerListing { containers, away }) => {
                    found.away.extend(away.iter().map(away_line));
                    Ok(containers.into_iter().map(FoundContainer::named).collect())
                }
                Err(refusal) => Err(refusal),
            },
        };
        match listed {
            Ok(containers) => found.containers.extend(containers),
            Err(refusal) if is_one => return Err(refusal),
            // LXC is served by default: a host that has only Docker need not say so.
            Err(refusal) if refusal.code == RefusalCode::MissingProgram => {}
            Err(refusal) => {
                let why = refusal.message.replace('\n', " ");
                let _ = writeln!(found.away, "{AWAY}{kind} {why}");
            }
        }
    }
    for user in &policy.podman_users {
        match list_of_user(helper, user).await {
            Ok(names) => {
                let containers = names.into_iter().map(FoundContainer::named);
                found.containers.extend(containers);
            }
            Err(refusal) => {
                let why = refusal.message.replace('\n', " ");
                let _ = writeln!(found.away, "{AWAY}{}@{user} {why}", RuntimeKind::Podman);
            }
        }
    }
    let containers = &mut found.containers;
    containers.retain(|one| policy.allows_container(one.name.as_str()));
    Ok(found)
}

/// The line about a Docker inside a container of LXC that did not answer: `!docker-in-lxc@LXC WHY`.
fn away_line(away: &AwayDaemon) -> String {
    let AwayDaemon { outer, why } = away;
    let why = why.replace('\n', " ");
    format!("{AWAY}{}@{outer} {why}\n", RuntimeKind::DockerInLxc)
}

fn unsupported() -> OperationRefusal {
    OperationRefusal::failed("unsupported operation")
}
