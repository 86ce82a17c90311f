//! What is done to a container beside starting and stopping it: frozen, kept, copied, changed, taken away.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{Changes, ContainerName, Deed, Operation, SnapshotFacts, SnapshotName};
use crate::sys::neutralise;

use super::super::error::{BackendError, ErrorKind};
use super::config::ContainerConfig;
use super::containers::LxcView;
use super::details::ContainerState;

/// How long what is done at once may take.
const SHORT: Duration = Duration::from_mins(1);

/// How long it may take to copy or remove as much as there is.
const LONG: Duration = Duration::from_hours(2);

/// A snapshot of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Snapshot {
    /// The snapshot's name.
    pub name: SnapshotName,
    /// When it was created, in the host's time zone: `2026-11-22 15:51:20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made: Option<String>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Whether it is complete; an incomplete one cannot be restored.
    pub complete: bool,
}

/// A container's full configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContainerDefinition {
    /// The container's name.
    pub container: ContainerName,
    /// The container's host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Whether it starts when the host boots.
    pub autostart: bool,
    /// Whether its root is an unprivileged user on the host.
    pub unprivileged: bool,
    #[serde(flatten)]
    pub config: ContainerConfig,
}

impl LxcView {
    /// Holds all processes of one, or lets them go on; one that is as asked is left alone.
    pub async fn set_frozen(&self, name: &ContainerName, frozen: bool) -> Result<(), BackendError> {
        let is = self.status(name).await?.state == ContainerState::Frozen;
        let deed = match frozen {
            wanted if wanted == is => return Ok(()),
            true => Deed::Freeze {},
            false => Deed::Unfreeze {},
        };
        self.have(name, deed, SHORT).await.map(drop)
    }

    /// Has one start with the box, or not.
    pub async fn set_autostart(&self, name: &ContainerName, on: bool) -> Result<(), BackendError> {
        self.have(name, Deed::Autostart { on }, SHORT)
            .await
            .map(drop)
    }

    /// What its definition says.
    pub async fn definition(
        &self,
        container: &ContainerName,
    ) -> Result<ContainerDefinition, BackendError> {
        let config = self.config(container).await?;
        Ok(ContainerDefinition {
            container: container.clone(),
            hostname: config.hostname.clone(),
            autostart: config.autostart,
            unprivileged: config.unprivileged,
            config,
        })
    }

    /// Changes its definition, which counts from its next start on.
    pub async fn configure(
        &self,
        name: &ContainerName,
        changes: Changes,
    ) -> Result<(), BackendError> {
        self.have(name, Deed::Configure { changes }, SHORT)
            .await
            .map(drop)
    }

    /// Its snapshots, the oldest first.
    pub async fn snapshots(&self, name: &ContainerName) -> Result<Vec<Snapshot>, BackendError> {
        let text = self.have(name, Deed::Snapshots {}, SHORT).await?;
        let facts: Result<Vec<SnapshotFacts>, _> = text.lines().map(serde_json::from_str).collect();
        let facts = facts.map_err(|cause| senseless(&cause))?;
        Ok(facts.into_iter().map(Snapshot::of).collect())
    }

    /// Keeps a stopped one as it is; the snapshot's name.
    pub async fn snapshot(
        &self,
        name: &ContainerName,
        comment: Option<String>,
    ) -> Result<SnapshotName, BackendError> {
        let said = self.have(name, Deed::Snapshot { comment }, LONG).await?;
        // What LXC prints itself comes before.
        let last = said.split_whitespace().next_back().unwrap_or_default();
        last.parse().map_err(|cause| senseless(&cause))
    }

    /// Brings a stopped one back to a snapshot.
    pub async fn restore(
        &self,
        name: &ContainerName,
        snapshot: SnapshotName,
    ) -> Result<(), BackendError> {
        self.have(name, Deed::Restore { snapshot }, LONG)
            .await
            .map(drop)
    }

    /// Stops one if it runs, brings it back to a snapshot, the newest if none is named, and starts it again if it
    /// ran; the snapshot.
    pub async fn rebuild(
        &self,
        name: &ContainerName,
        snapshot: Option<SnapshotName>,
        grace: Duration,
    ) -> Result<SnapshotName, BackendError> {
        let mut known = self.snapshots(name).await?;
        known.retain(|known| known.complete && snapshot.as_ref().is_none_or(|s| *s == known.name));
        let Some(Snapshot { name: snapshot, .. }) = known.pop() else {
            let words = format!("container '{name}' has no such snapshot to go back to");
            let hint = "container_snapshot_list names those that there are.".to_owned();
            return Err(BackendError {
                hint: Some(hint),
                ..BackendError::new(ErrorKind::Refused, words)
            });
        };
        let ran = self.status(name).await?.state != ContainerState::Stopped;
        self.stop(name, grace).await?;
        let restored = self.restore(name, snapshot.clone()).await;
        if ran {
            // As it was before, also where it could not be brought back.
            self.start(name).await?;
        }
        restored.map(|()| snapshot)
    }

    /// Deletes a snapshot.
    pub async fn forget(
        &self,
        name: &ContainerName,
        snapshot: SnapshotName,
    ) -> Result<(), BackendError> {
        self.have(name, Deed::Forget { snapshot }, LONG)
            .await
            .map(drop)
    }

    /// Copies a stopped one under a name that is within reach, too.
    pub async fn clone_to(
        &self,
        name: &ContainerName,
        to: &ContainerName,
    ) -> Result<(), BackendError> {
        self.within_reach(to)?;
        let to = to.clone();
        self.have(name, Deed::Clone { to }, LONG).await.map(drop)
    }

    /// Makes one from a template.
    pub async fn create(&self, name: &ContainerName, template: String) -> Result<(), BackendError> {
        self.within_reach(name)?;
        short(&template)?;
        let name = name.clone();
        let operation = Operation::ContainerCreate { name, template };
        self.ask(operation, LONG).await.map(drop)
    }

    /// Takes one away with all that is in it.
    pub async fn destroy(
        &self,
        name: &ContainerName,
        force: bool,
        snapshots: bool,
    ) -> Result<(), BackendError> {
        let deed = Deed::Destroy { force, snapshots };
        self.have(name, deed, LONG).await.map(drop)
    }

    /// Has something done to one, and returns what was printed.
    pub(super) async fn have(
        &self,
        name: &ContainerName,
        deed: Deed,
        time: Duration,
    ) -> Result<String, BackendError> {
        if let Deed::Snapshot {
            comment: Some(text),
        } = &deed
        {
            short(text)?;
        }
        let operation = |container| Operation::ContainerDeed { container, deed };
        self.about(name, operation, time).await
    }

    /// A new one must be where whoever makes it can see it; so nobody learns which names are taken elsewhere.
    fn within_reach(&self, name: &ContainerName) -> Result<(), BackendError> {
        if self.shows(name) {
            return Ok(());
        }
        let words = format!("a container '{name}' would not be within this agent's reach");
        Err(BackendError::new(ErrorKind::Refused, words))
    }
}

impl Snapshot {
    fn of(facts: SnapshotFacts) -> Self {
        let made = facts.made.map(|made| {
            let (date, time) = made.split_once(' ').unwrap_or((&made, ""));
            let date = date.replace(':', "-");
            neutralise(format!("{date} {time}").trim()).into_owned()
        });
        Self {
            name: facts.name,
            complete: made.is_some(),
            made,
            comment: facts
                .comment
                .map(|comment| neutralise(&comment).into_owned()),
        }
    }
}

/// Refuses a text that would not even fit into a message to the helper, which judges all others.
pub fn short(text: &str) -> Result<(), BackendError> {
    const MOST_BYTES: usize = 4096;
    if text.len() <= MOST_BYTES {
        return Ok(());
    }
    let words = format!("a text of more than {MOST_BYTES} bytes is no name and no comment");
    Err(BackendError::new(ErrorKind::Refused, words))
}

/// The helper's words are not those that were agreed on.
pub fn senseless(cause: &dyn std::fmt::Display) -> BackendError {
    let words = format!("the helper's words on containers make no sense: {cause}");
    BackendError::new(ErrorKind::Failed, words)
}
