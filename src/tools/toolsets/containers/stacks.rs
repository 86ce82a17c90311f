//! `stack_*`: the containers of a Compose project, together.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lifecycle::Grace;
use crate::toolsets::failure::failed;
use gatewren_host::backends::{
    ContainerHealth, ContainerImage, ContainerRef, ContainerState, Lxc, LxcView, MemberChange,
    MemberOutcome, Stack, StackAction, StackMember, StackRef,
};
use gatewren_wire::registry::{Cx, HelperClass, Result, Risk, Scope, ToolError, Toolset};

/// The toolset.
pub fn tools(lxc: Arc<Lxc>) -> Toolset<Lxc> {
    const STACK: Scope = Scope::Stack("stack");
    Toolset::new(lxc)
        .with_name("containers")
        .tool("stack_list", Risk::Read, list)
        .about(Scope::Within)
        .through(HelperClass::LxcReads)
        .titled("List Compose stacks")
        .tool("stack_info", Risk::Read, info)
        .about(STACK)
        .through(HelperClass::LxcReads)
        .titled("Compose stack details")
        .tool("stack_start", Risk::Write, start)
        .about(STACK)
        .through(HelperClass::LxcWrites)
        .titled("Start a Compose stack")
        .syncs_state()
        .tool("stack_stop", Risk::Disrupt, stop)
        .about(STACK)
        .through(HelperClass::LxcWrites)
        .titled("Stop a Compose stack")
        .syncs_state()
        .tool("stack_restart", Risk::Disrupt, restart)
        .about(STACK)
        .through(HelperClass::LxcWrites)
        .titled("Restart a Compose stack")
        .syncs_state()
}

/// List the Compose stacks (projects) of Docker and Podman, with how many of their containers run or are unhealthy.
/// `stack_info` shows the containers of one, and `container_list` those without a stack too.
///
/// A stack is shown only if you may see all of its containers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Serialize, JsonSchema)]
struct Stacks {
    /// The stacks, sorted by reference.
    stacks: Vec<StackLine>,
    /// The runtimes that did not answer; their stacks are unknown now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unavailable: Vec<UnavailableRuntime>,
}

#[derive(Serialize, JsonSchema)]
struct StackLine {
    /// The stack's reference, which other tools take: the runtime and the project.
    stack: StackRef,
    /// The services, sorted.
    services: BTreeSet<String>,
    /// How many containers it has.
    containers: usize,
    /// How many of them run.
    running: usize,
    /// How many of them have a health check that fails.
    unhealthy: usize,
}

#[derive(Serialize, JsonSchema)]
struct UnavailableRuntime {
    /// The runtime: docker or podman.
    runtime: &'static str,
    /// Why it did not answer.
    why: String,
}

async fn list(lxc: Arc<Lxc>, List {}: List, cx: Cx) -> Result<Stacks> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let listing = lxc.stacks().await.map_err(failed)?;
    let unavailable = listing.away.into_iter().map(|away| UnavailableRuntime {
        runtime: away.runtime.word(),
        why: away.why,
    });
    Ok(Stacks {
        stacks: listing.stacks.into_iter().map(StackLine::from).collect(),
        unavailable: unavailable.collect(),
    })
}

impl From<Stack> for StackLine {
    fn from(stack: Stack) -> Self {
        let count = |counts: &dyn Fn(&StackMember) -> bool| {
            let members = stack.members.iter();
            members.filter(|member| counts(member)).count()
        };
        let is_unhealthy = |member: &StackMember| {
            let health = member.engine.health.as_ref();
            health.is_some_and(|health| health.status == "unhealthy")
        };
        Self {
            containers: stack.members.len(),
            running: count(&|member| member.state == ContainerState::Running),
            unhealthy: count(&is_unhealthy),
            services: stack.members.iter().map(|m| m.service.clone()).collect(),
            stack: stack.reference,
        }
    }
}

/// Describe the containers of a Compose stack: service, state, health, image with id and digest, and whether the daemon
/// has a newer image of the same name already. `container_info` shows more of one.
///
/// It does not ask a registry. The stack is not found if you may not see all of its containers.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Info {
    /// The stack, such as `docker:media`, or its unique name. `stack_list` shows it.
    stack: StackRef,
}

#[derive(Serialize, JsonSchema)]
struct StackDetails {
    /// The stack's reference.
    stack: StackRef,
    /// The project's files on the host, for callers that may see the host.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    config_files: BTreeSet<String>,
    /// The containers, sorted by service.
    containers: Vec<ContainerOfStack>,
}

#[derive(Serialize, JsonSchema)]
struct ContainerOfStack {
    /// The service.
    service: String,
    /// The container's reference.
    container: ContainerRef,
    /// Its state.
    state: ContainerState,
    /// The engine's word for its state, such as exited or restarting.
    engine_state: String,
    /// What its health check found; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    health: Option<ContainerHealth>,
    /// The exit code of its main process; absent while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i64>,
    /// The services that start before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<String>,
    /// The image, as it was named when the container was created.
    image: String,
    /// The id of the image that it was created from.
    #[serde(skip_serializing_if = "Option::is_none")]
    image_id: Option<String>,
    /// That image's digests in registries; none if it was built here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    image_digests: Vec<String>,
    /// Whether the daemon has another image under that name by now. The container uses it after it is created again.
    newer_image: NewerImage,
}

/// Whether the daemon has a newer image than the one that a container was created from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NewerImage {
    /// The name now belongs to another image.
    Yes,
    /// The name still belongs to the image that the container uses.
    No,
    /// It cannot be told: the name belongs to no image, or the container was created from an id.
    Unknown,
}

async fn info(lxc: Arc<Lxc>, Info { stack }: Info, cx: Cx) -> Result<StackDetails> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let stack = lxc.stack(&stack).await.map_err(failed)?;
    let compose = stack
        .members
        .iter()
        .filter_map(|m| m.engine.compose.as_ref());
    let config_files = compose.flat_map(|compose| compose.config_files.clone());
    let config_files = config_files.collect();
    let mut containers = Vec::new();
    for member in stack.members {
        containers.push(ContainerOfStack::of(&lxc, member).await);
    }
    containers.sort_by(|a, b| (&a.service, &a.container).cmp(&(&b.service, &b.container)));
    Ok(StackDetails {
        stack: stack.reference,
        config_files,
        containers,
    })
}

impl ContainerOfStack {
    async fn of(lxc: &LxcView, member: StackMember) -> Self {
        // An image that cannot be read does not hide the state of its container.
        let image = lxc.image(&member.container).await.ok();
        let engine = member.engine;
        Self {
            newer_image: image.as_ref().map_or(NewerImage::Unknown, NewerImage::of),
            image_digests: image.map(|image| image.digests).unwrap_or_default(),
            service: member.service,
            container: member.container,
            state: member.state,
            engine_state: engine.engine_state,
            health: engine.health,
            exit_code: engine.exit_code,
            depends_on: member.depends_on.into_iter().map(|d| d.service).collect(),
            image: engine.image,
            image_id: engine.image_id,
        }
    }
}

impl NewerImage {
    fn of(image: &ContainerImage) -> Self {
        match (&image.image_id, &image.named_image_id) {
            (Some(own), Some(named)) if own == named => Self::No,
            (Some(_), Some(_)) => Self::Yes,
            _ => Self::Unknown,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct StackChanged {
    /// The stack's reference.
    stack: StackRef,
    /// What became of each container, sorted by reference.
    containers: Vec<MemberChange>,
}

/// Start the containers of a Compose stack that do not run, those that others depend on first. `container_start` starts
/// one.
///
/// Waits up to 40 s for services that must be healthy. If some do not start, the error lists all. Refused as not found
/// unless you may see every container of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    /// The stack, such as `docker:media`, or its unique name. `stack_list` shows it.
    stack: StackRef,
}

async fn start(lxc: Arc<Lxc>, Start { stack }: Start, cx: Cx) -> Result<StackChanged> {
    change(&lxc, &stack, StackAction::Start, &cx).await
}

/// Stop all containers of a Compose stack, those that others depend on last; each is killed after the grace period.
/// `stack_start` starts it again, `container_stop` stops one.
///
/// If some do not stop, the error lists all. Refused as not found unless you may see every container of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stop {
    /// The stack, such as `docker:media`, or its unique name. `stack_list` shows it.
    stack: StackRef,
    /// Seconds that each container has to shut down, at most 40; 0 forces it at once.
    #[serde(default)]
    grace_s: Grace,
}

async fn stop(lxc: Arc<Lxc>, Stop { stack, grace_s }: Stop, cx: Cx) -> Result<StackChanged> {
    change(&lxc, &stack, StackAction::Stop(grace_s.seconds()), &cx).await
}

/// Restart a Compose stack: stop all containers, then start all, in the order of their dependencies.
/// `container_restart` restarts one.
///
/// New images and changed files take no effect. If some fail, the error lists all. Refused as not found unless you may
/// see every container of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restart {
    /// The stack, such as `docker:media`, or its unique name. `stack_list` shows it.
    stack: StackRef,
    /// Seconds that each container has to shut down, at most 40; 0 forces it at once.
    #[serde(default)]
    grace_s: Grace,
}

async fn restart(
    lxc: Arc<Lxc>,
    Restart { stack, grace_s }: Restart,
    cx: Cx,
) -> Result<StackChanged> {
    change(&lxc, &stack, StackAction::Restart(grace_s.seconds()), &cx).await
}

async fn change(lxc: &Lxc, stack: &StackRef, action: StackAction, cx: &Cx) -> Result<StackChanged> {
    let lxc = lxc.view_for(&cx.caller().reach, cx.reference());
    let mut run = lxc.change_stack(stack, action).await.map_err(failed)?;
    let total = portion(run.total());
    while run.step().await {
        cx.progress(portion(run.done()), Some(total), None).await;
    }
    let stack = run.reference().clone();
    let containers = run.into_changes();
    match incomplete(&stack, &containers) {
        Some(error) => Err(error.into()),
        None => Ok(StackChanged { stack, containers }),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a stack has at most 256 groups, twice"
)]
fn portion(groups: usize) -> f64 {
    groups as f64
}

/// Returns the error that lists the outcome of each container; `None` if every change succeeded.
fn incomplete(stack: &StackRef, changes: &[MemberChange]) -> Option<ToolError> {
    let is_done = |change: &&MemberChange| {
        !matches!(
            change.outcome,
            MemberOutcome::Failed | MemberOutcome::Skipped
        )
    };
    let done = changes.iter().filter(is_done).count();
    if done == changes.len() {
        return None;
    }
    let all: Vec<String> = changes.iter().map(describe).collect();
    let words = format!(
        "{done} of the {} containers of the stack '{stack}' are done. {}",
        changes.len(),
        all.join(". ")
    );
    let hint = "stack_info shows the state of each, and container_logs why one failed. A second call changes only \
                what is not done.";
    Some(ToolError::new(words).hint(hint))
}

fn describe(change: &MemberChange) -> String {
    let outcome = match change.outcome {
        MemberOutcome::Started => "started",
        MemberOutcome::Stopped => "stopped",
        MemberOutcome::Restarted => "restarted",
        MemberOutcome::Unchanged => "unchanged",
        MemberOutcome::Failed => "failed",
        MemberOutcome::Skipped => "skipped",
    };
    let container = &change.container;
    match &change.why {
        Some(why) => format!("{container}: {outcome}: {}", why.trim_end_matches('.')),
        None => format!("{container}: {outcome}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_newer_if_the_name_belongs_to_another_one() {
        let image = |own: Option<&str>, named: Option<&str>| ContainerImage {
            image_id: own.map(str::to_owned),
            named_image_id: named.map(str::to_owned),
            ..ContainerImage::default()
        };
        for (own, named, expected) in [
            (Some("a"), Some("a"), NewerImage::No),
            (Some("a"), Some("b"), NewerImage::Yes),
            (Some("a"), None, NewerImage::Unknown),
            (None, Some("a"), NewerImage::Unknown),
        ] {
            assert_eq!(NewerImage::of(&image(own, named)), expected);
        }
    }

    #[test]
    fn a_partial_failure_lists_what_was_done_and_what_was_not() {
        let change = |name: &str, outcome, why: Option<&str>| MemberChange {
            container: format!("docker:{name}").parse().unwrap(),
            service: name.to_owned(),
            outcome,
            why: why.map(str::to_owned),
        };
        let stack: StackRef = "docker:media".parse().unwrap();
        let mut changes = vec![change("db", MemberOutcome::Started, None)];
        assert!(incomplete(&stack, &changes).is_none());
        changes.push(change("api", MemberOutcome::Failed, Some("no space left.")));
        changes.push(change("web", MemberOutcome::Skipped, Some("no api")));
        let error = incomplete(&stack, &changes).unwrap().to_string();
        for part in [
            "1 of the 3 containers of the stack 'docker:media'",
            "docker:db: started. docker:api: failed: no space left. docker:web: skipped: no api",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
}
