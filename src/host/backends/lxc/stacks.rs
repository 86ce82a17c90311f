//! Stacks: the containers of a Compose project, as their labels show it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::sleep;

use gatewren_base::config::RuntimeKind;

use crate::helper_client::{
    ComposeDependency, ContainerAction, ContainerImage, ContainerRef, EngineFacts, Operation,
    StackRef,
};

use super::super::error::{BackendError, ErrorKind};
use super::containers::{LxcView, QUESTION_TIME};
use super::details::{ContainerState, ContainerStatus};
use super::listing::{AwayRuntime, ContainerListing};

/// How often a container is asked again that cannot be read, and the pause before. After that the list fails.
const REMOVAL_LOOKS: usize = 5;
const REMOVAL_PAUSE: Duration = Duration::from_millis(200);

/// A Compose project of one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Its reference, with the runtime.
    pub reference: StackRef,
    /// Its containers, sorted by reference. Single runs of a service (`docker compose run`) are not among them.
    pub members: Vec<StackMember>,
}

/// A container of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackMember {
    /// The container.
    pub container: ContainerRef,
    /// Its service; the container's name if no label names one.
    pub service: String,
    /// The services that start before it.
    pub depends_on: Vec<ComposeDependency>,
    /// Its state.
    pub state: ContainerState,
    /// What its engine says about it.
    pub engine: EngineFacts,
}

/// The stacks that exist for a caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackListing {
    /// The stacks, sorted by reference.
    pub stacks: Vec<Stack>,
    /// The runtimes whose stacks are unknown now.
    pub away: Vec<AwayRuntime>,
}

impl LxcView {
    /// Returns the stacks. A stack exists for a caller that may access all of its containers, and for no other. A
    /// project with a name that gatewren's tools reject is left out.
    pub async fn stacks(&self) -> Result<StackListing, BackendError> {
        self.read_stacks(None).await
    }

    /// Returns one stack.
    ///
    /// # Errors
    /// Also if its runtime does not answer, and if several runtimes have a stack of a name without a runtime.
    pub async fn stack(&self, name: &StackRef) -> Result<Stack, BackendError> {
        let StackListing { stacks, away } = self.read_stacks(name.runtime()).await?;
        if let Some(AwayRuntime { runtime, why, .. }) = away.into_iter().next() {
            let title = runtime.title();
            let words = format!("the stacks of {title} cannot be read: {why}");
            return Err(BackendError::new(ErrorKind::Unavailable, words));
        }
        let mut found: Vec<Stack> = stacks;
        found.retain(|stack| stack.reference.project() == name.project());
        match found.as_slice() {
            [] => {
                let words = format!("there is no stack '{name}'");
                Err(BackendError {
                    hint: Some("stack_list lists the stacks.".to_owned()),
                    ..BackendError::new(ErrorKind::NotFound, words)
                })
            }
            [_] => Ok(found.remove(0)),
            several => {
                let named: Vec<&str> = several.iter().map(|s| s.reference.as_str()).collect();
                let named = named.join(" and ");
                let words = format!("several stacks have the name '{name}': {named}; name one");
                Err(BackendError::new(ErrorKind::Refused, words))
            }
        }
    }

    /// Returns what the engine of a container knows about its image, and about the image that has the name now.
    pub async fn image(&self, container: &ContainerRef) -> Result<ContainerImage, BackendError> {
        let operation = |container| Operation::ContainerAction {
            container,
            action: ContainerAction::Image {},
        };
        let text = self
            .ask_container(container, operation, QUESTION_TIME)
            .await?;
        serde_json::from_str(&text).map_err(|cause| {
            let words = format!("the helper's answer about an image is invalid: {cause}");
            BackendError::new(ErrorKind::Failed, words)
        })
    }

    /// Reads the stacks of one runtime or all. Containers beyond the caller's reach are read too, because a stack with
    /// one of them does not exist for the caller.
    async fn read_stacks(&self, of: Option<RuntimeKind>) -> Result<StackListing, BackendError> {
        let whole = self.unfiltered();
        let ContainerListing { containers, away } = whole.listing().await?;
        let asked = |runtime| match of {
            Some(of) => of == runtime,
            // A container of Docker inside LXC is of no stack.
            None => matches!(runtime, RuntimeKind::Docker | RuntimeKind::Podman),
        };
        let containers = containers.into_iter().filter(|c| asked(c.runtime()));
        let containers: Vec<ContainerRef> = containers.collect();
        // Containers in other places belong to no stack.
        let away = away.into_iter();
        let away = away.filter(|away| away.place.is_none() && asked(away.runtime));
        let mut found = FoundStacks::default();
        if containers.iter().any(|container| self.shows(container)) {
            for container in containers {
                let status = whole.status_of_listed(&container).await;
                let status = status.map_err(|error| self.masked(&container, error))?;
                if let Some(status) = status {
                    self.sort_in(&mut found, container, status);
                }
            }
        }
        Ok(StackListing {
            stacks: found.into_stacks(),
            away: away.collect(),
        })
    }

    /// Returns the status of a container that was in a list; `None` if it has been removed since. While an engine
    /// removes a container, it answers with other errors than for one that it does not have, so it is asked again.
    async fn status_of_listed(
        &self,
        container: &ContainerRef,
    ) -> Result<Option<ContainerStatus>, BackendError> {
        for _ in 0..REMOVAL_LOOKS {
            match self.status(container).await {
                Ok(status) => return Ok(Some(status)),
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind == ErrorKind::Unavailable => return Err(error),
                Err(_) => sleep(REMOVAL_PAUSE).await,
            }
        }
        self.status(container).await.map(Some)
    }

    fn sort_in(&self, found: &mut FoundStacks, container: ContainerRef, status: ContainerStatus) {
        let is_shown = self.shows(&container);
        let Some((reference, mut member)) = StackMember::of(container, status) else {
            return;
        };
        if is_shown {
            member.engine = self.visible_facts(member.engine);
            found.members.entry(reference).or_default().push(member);
        } else {
            found.hidden.insert(reference);
        }
    }

    /// Removes what an error says about a container that the caller may not see.
    fn masked(&self, container: &ContainerRef, error: BackendError) -> BackendError {
        if self.shows(container) {
            return error;
        }
        BackendError {
            message: "the containers cannot all be read now".to_owned(),
            hint: None,
            ..error
        }
    }
}

/// The containers of stacks, while they are read.
#[derive(Default)]
struct FoundStacks {
    members: BTreeMap<StackRef, Vec<StackMember>>,
    /// The stacks with a container beyond the caller's reach.
    hidden: BTreeSet<StackRef>,
}

impl FoundStacks {
    fn into_stacks(self) -> Vec<Stack> {
        let all = self.members.into_iter();
        let whole = all.filter(|(reference, _)| !self.hidden.contains(reference));
        let stacks = whole.map(|(reference, members)| Stack { reference, members });
        stacks.collect()
    }
}

impl StackMember {
    /// Returns the container's stack, and the container as its member; `None` for a container of no stack. The stacks
    /// are those of the host: a container in another place is of none.
    fn of(container: ContainerRef, status: ContainerStatus) -> Option<(StackRef, Self)> {
        let mut engine = status.engine?;
        let compose = engine.compose.as_mut()?;
        if compose.one_off || container.place().is_some() {
            return None;
        }
        let reference = StackRef::of(container.runtime(), &compose.project).ok()?;
        let service = compose.service.clone();
        let member = Self {
            service: service.unwrap_or_else(|| container.name().to_owned()),
            depends_on: std::mem::take(&mut compose.depends_on),
            state: status.state,
            engine,
            container,
        };
        Some((reference, member))
    }
}
