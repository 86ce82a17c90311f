//! Starts and stops the containers of a stack in the order of their dependencies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::helper_client::{ContainerRef, StackRef};
use gatewren_base::sys::on_same_behalf;

use super::super::error::{BackendError, ErrorKind};
use super::containers::LxcView;
use super::details::ContainerState;
use super::stack_order::start_order;
use super::stack_readiness::{StartCondition, wait_until_ready};
use super::stacks::{Stack, StackMember};

/// The most containers of a stack that is started or stopped; a larger one is refused.
const MAX_MEMBERS: usize = 256;

/// How many containers are started or stopped at once.
const AT_ONCE: usize = 4;

/// How long starts wait altogether for services to become healthy or to end; then the containers that depend on them
/// are not started.
const READY_TIME: Duration = Duration::from_secs(40);

/// What to do with a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackAction {
    /// Start what does not run.
    Start,
    /// Stop what runs; each container is killed after the grace period.
    Stop(Duration),
    /// Stop it, and then start everything.
    Restart(Duration),
}

/// What became of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberOutcome {
    /// It was started.
    Started,
    /// It was stopped.
    Stopped,
    /// It was stopped and started.
    Restarted,
    /// It was in that state already.
    Unchanged,
    /// It could not be started or stopped.
    Failed,
    /// Nothing was tried, because of another container.
    Skipped,
}

/// What became of a container of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemberChange {
    /// The container.
    pub container: ContainerRef,
    /// Its service.
    pub service: String,
    /// What was done.
    pub outcome: MemberOutcome,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A change of a stack, group after group.
#[derive(Debug)]
pub struct StackRun {
    lxc: LxcView,
    stack: Stack,
    groups: VecDeque<MemberGroup>,
    changes: BTreeMap<ContainerRef, MemberChange>,
    /// The services of which a container could not be stopped, or not be started.
    not_stopped: BTreeSet<String>,
    not_started: BTreeSet<String>,
    ready_until: Instant,
    total: usize,
}

/// Containers that are started or stopped together.
#[derive(Debug)]
struct MemberGroup {
    verb: Verb,
    members: Vec<StackMember>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Start,
    Stop(Duration),
}

/// The end of one start or stop.
struct MemberEnd {
    member: StackMember,
    outcome: Result<MemberOutcome, BackendError>,
}

impl LxcView {
    /// Prepares a change of a stack; [`StackRun::step`] then performs it.
    ///
    /// # Errors
    /// If there is no such stack for the caller, or if it has more than 256 containers.
    pub async fn change_stack(
        &self,
        name: &StackRef,
        action: StackAction,
    ) -> Result<StackRun, BackendError> {
        let stack = self.stack(name).await?;
        if stack.members.len() > MAX_MEMBERS {
            let words = format!(
                "the stack '{}' has {} containers, and at most {MAX_MEMBERS} are changed by a call; nothing was done. \
                 Change them one by one.",
                stack.reference,
                stack.members.len()
            );
            return Err(BackendError::new(ErrorKind::Refused, words));
        }
        let groups = groups(&stack, action);
        Ok(StackRun {
            lxc: self.clone(),
            stack,
            total: groups.len(),
            groups,
            changes: BTreeMap::new(),
            not_stopped: BTreeSet::new(),
            not_started: BTreeSet::new(),
            ready_until: Instant::now() + READY_TIME,
        })
    }
}

/// Returns the groups in the order in which they are changed.
fn groups(stack: &Stack, action: StackAction) -> VecDeque<MemberGroup> {
    let order = start_order(&stack.members);
    let group = |verb, members: &Vec<&StackMember>| MemberGroup {
        verb,
        members: members.iter().copied().cloned().collect(),
    };
    let mut groups = VecDeque::new();
    if let StackAction::Stop(grace) | StackAction::Restart(grace) = action {
        let stops = order.iter().rev();
        groups.extend(stops.map(|members| group(Verb::Stop(grace), members)));
    }
    if let StackAction::Start | StackAction::Restart(_) = action {
        groups.extend(order.iter().map(|members| group(Verb::Start, members)));
    }
    groups
}

impl StackRun {
    /// Starts or stops the next group. Returns `false` when all are done.
    pub async fn step(&mut self) -> bool {
        let Some(group) = self.groups.pop_front() else {
            return false;
        };
        for members in group.members.chunks(AT_ONCE) {
            let mut tasks = JoinSet::new();
            for member in members {
                match self.obstacle(group.verb, member) {
                    Some(why) => self.skip(group.verb, member, why),
                    None => self.spawn(&mut tasks, group.verb, member.clone()),
                }
            }
            while let Some(end) = tasks.join_next().await {
                match end {
                    Ok(end) => self.record(group.verb, end),
                    // Its containers are reported as skipped.
                    Err(cause) => tracing::error!(%cause, "a start or stop of a stack"),
                }
            }
        }
        true
    }

    /// Returns how many groups are done.
    pub fn done(&self) -> usize {
        self.total - self.groups.len()
    }

    /// Returns the number of groups. A restart has each twice.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The stack.
    pub fn reference(&self) -> &StackRef {
        &self.stack.reference
    }

    /// Returns what became of each container, sorted by reference.
    pub fn into_changes(mut self) -> Vec<MemberChange> {
        let members = self.stack.members.into_iter();
        let changes = members.map(|member| {
            let change = self.changes.remove(&member.container);
            change.unwrap_or_else(|| MemberChange {
                container: member.container,
                service: member.service,
                outcome: MemberOutcome::Skipped,
                why: Some("the change ended before it".to_owned()),
            })
        });
        changes.collect()
    }

    /// Returns why a container is left as it is: something that must come first has failed.
    fn obstacle(&self, verb: Verb, member: &StackMember) -> Option<String> {
        match verb {
            Verb::Start => {
                let mut needed = member.depends_on.iter();
                let missing = needed.find(|needed| self.not_started.contains(&needed.service))?;
                let missing = &missing.service;
                Some(format!(
                    "the service '{missing}', which it depends on, was not started"
                ))
            }
            Verb::Stop(_) => {
                let needs = |other: &&StackMember| {
                    let is_needed = |needed: &str| needed == member.service;
                    self.not_stopped.contains(&other.service)
                        && other.depends_on.iter().any(|d| is_needed(&d.service))
                };
                let other = self.stack.members.iter().find(needs)?;
                let other = &other.service;
                Some(format!(
                    "the service '{other}', which depends on it, was not stopped"
                ))
            }
        }
    }

    fn spawn(&self, tasks: &mut JoinSet<MemberEnd>, verb: Verb, member: StackMember) {
        let (lxc, until) = (self.lxc.clone(), self.ready_until);
        let conditions = match verb {
            Verb::Start => StartCondition::of(&member, &self.stack.members),
            Verb::Stop(_) => Vec::new(),
        };
        let change = async move {
            let outcome = match verb {
                Verb::Start => start(&lxc, &member.container, &conditions, until).await,
                Verb::Stop(grace) => stop(&lxc, &member.container, grace).await,
            };
            MemberEnd { member, outcome }
        };
        tasks.spawn(on_same_behalf(change));
    }

    fn skip(&mut self, verb: Verb, member: &StackMember, why: String) {
        self.note_failure(verb, member);
        self.note(member, MemberOutcome::Skipped, Some(why));
    }

    fn record(&mut self, verb: Verb, MemberEnd { member, outcome }: MemberEnd) {
        match outcome {
            Ok(outcome) => self.note(&member, outcome, None),
            Err(error) => {
                self.note_failure(verb, &member);
                self.note(&member, MemberOutcome::Failed, Some(error.to_string()));
            }
        }
    }

    fn note_failure(&mut self, verb: Verb, member: &StackMember) {
        let failed = match verb {
            Verb::Start => &mut self.not_started,
            Verb::Stop(_) => &mut self.not_stopped,
        };
        failed.insert(member.service.clone());
    }

    /// Remembers what became of a container; the second time, in a restart, both parts make the outcome.
    fn note(&mut self, member: &StackMember, outcome: MemberOutcome, why: Option<String>) {
        use MemberOutcome::{Failed, Restarted, Skipped, Started, Stopped};
        let first = self.changes.get(&member.container).map(|c| c.outcome);
        let (outcome, why) = match (first, outcome) {
            (Some(Failed | Skipped), _) => return,
            (Some(Stopped), Started) => (Restarted, why),
            (Some(Stopped), Failed | Skipped) => {
                let why = why.map(|why| format!("it was stopped, and not started again: {why}"));
                (outcome, why)
            }
            _ => (outcome, why),
        };
        let change = MemberChange {
            container: member.container.clone(),
            service: member.service.clone(),
            outcome,
            why,
        };
        self.changes.insert(member.container.clone(), change);
    }
}

async fn start(
    lxc: &LxcView,
    container: &ContainerRef,
    conditions: &[StartCondition],
    until: Instant,
) -> Result<MemberOutcome, BackendError> {
    if let ContainerState::Running | ContainerState::Starting = lxc.status(container).await?.state {
        return Ok(MemberOutcome::Unchanged);
    }
    for condition in conditions {
        wait_until_ready(lxc, condition, until).await?;
    }
    lxc.start(container).await?;
    Ok(MemberOutcome::Started)
}

async fn stop(
    lxc: &LxcView,
    container: &ContainerRef,
    grace: Duration,
) -> Result<MemberOutcome, BackendError> {
    if lxc.status(container).await?.state == ContainerState::Stopped {
        return Ok(MemberOutcome::Unchanged);
    }
    lxc.stop(container, grace).await?;
    Ok(MemberOutcome::Stopped)
}

#[cfg(test)]
mod tests {
    use crate::helper_client::{ComposeDependency, DependencyCondition, EngineFacts, HelperClient};
    use gatewren_base::config::Reach;

    use super::super::containers::Lxc;
    use super::*;

    fn member(name: &str, depends_on: &[&str]) -> StackMember {
        let depends_on = depends_on.iter().map(|service| ComposeDependency {
            service: (*service).to_owned(),
            condition: DependencyCondition::Started,
        });
        StackMember {
            container: format!("docker:{name}").parse().unwrap(),
            service: name.to_owned(),
            depends_on: depends_on.collect(),
            state: ContainerState::Stopped,
            engine: EngineFacts::default(),
        }
    }

    fn run(action: StackAction) -> StackRun {
        let stack = Stack {
            reference: "docker:media".parse().unwrap(),
            members: vec![member("api", &["db"]), member("db", &[])],
        };
        let helper = HelperClient::connect_to("/nonexistent/helper".into());
        let groups = groups(&stack, action);
        StackRun {
            lxc: Lxc::new(helper).view_for(&Reach::everything(), "test"),
            stack,
            total: groups.len(),
            groups,
            changes: BTreeMap::new(),
            not_stopped: BTreeSet::new(),
            not_started: BTreeSet::new(),
            ready_until: Instant::now(),
        }
    }

    fn end(run: &mut StackRun, name: usize, outcome: Result<MemberOutcome, &str>) {
        let verb = run.groups.front().unwrap().verb;
        let member = run.stack.members[name].clone();
        let failed = |words: &str| BackendError::new(ErrorKind::Failed, words);
        let outcome = outcome.map_err(failed);
        run.record(verb, MemberEnd { member, outcome });
    }

    fn outcomes(run: StackRun) -> Vec<(MemberOutcome, String)> {
        let changes = run.into_changes().into_iter();
        changes
            .map(|change| (change.outcome, change.why.unwrap_or_default()))
            .collect()
    }

    #[test]
    fn a_restart_stops_in_reverse_order_and_starts_in_order() {
        let run = run(StackAction::Restart(Duration::ZERO));
        let stop = Verb::Stop(Duration::ZERO);
        let groups = run.groups.iter();
        let order: Vec<_> = groups
            .map(|group| (group.verb, group.members[0].service.as_str()))
            .collect();
        let expected = [
            (stop, "api"),
            (stop, "db"),
            (Verb::Start, "db"),
            (Verb::Start, "api"),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn a_stop_and_a_start_make_a_restart() {
        let mut run = run(StackAction::Restart(Duration::ZERO));
        end(&mut run, 0, Ok(MemberOutcome::Stopped));
        end(&mut run, 1, Ok(MemberOutcome::Unchanged));
        run.groups.drain(..2);
        end(&mut run, 1, Ok(MemberOutcome::Started));
        end(&mut run, 0, Ok(MemberOutcome::Started));
        let expected = [MemberOutcome::Restarted, MemberOutcome::Started];
        let outcomes = outcomes(run).into_iter().map(|(outcome, _)| outcome);
        assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn nothing_starts_after_a_service_that_it_depends_on_has_failed() {
        let mut run = run(StackAction::Start);
        end(&mut run, 1, Err("no space left"));
        run.groups.pop_front();
        assert!(run.step().await);
        assert!(!run.step().await);
        let outcomes = outcomes(run);
        assert_eq!(outcomes[1], (MemberOutcome::Failed, "no space left".into()));
        assert_eq!(outcomes[0].0, MemberOutcome::Skipped);
        assert!(outcomes[0].1.contains("'db'"), "{}", outcomes[0].1);
    }

    #[tokio::test]
    async fn nothing_stops_while_a_service_that_depends_on_it_runs() {
        let mut run = run(StackAction::Stop(Duration::ZERO));
        // There is no helper, so this stop fails.
        assert!(run.step().await && run.step().await && !run.step().await);
        let outcomes = outcomes(run);
        assert_eq!(outcomes[0].0, MemberOutcome::Failed);
        assert_eq!(outcomes[1].0, MemberOutcome::Skipped);
        assert!(outcomes[1].1.contains("'api'"), "{}", outcomes[1].1);
    }

    #[test]
    fn a_container_that_was_only_stopped_says_so() {
        let mut run = run(StackAction::Restart(Duration::ZERO));
        end(&mut run, 1, Ok(MemberOutcome::Stopped));
        run.groups.drain(..2);
        end(&mut run, 1, Err("no space left"));
        let (outcome, why) = outcomes(run).remove(1);
        assert_eq!(outcome, MemberOutcome::Failed);
        assert_eq!(why, "it was stopped, and not started again: no space left");
    }
}
