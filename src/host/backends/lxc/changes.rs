//! Container actions other than start and stop: freeze, snapshot, clone, configure, create and destroy.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{
    ContainerAction, ContainerRef, DefinitionChanges, EngineFacts, Operation, SnapshotFacts,
    SnapshotName,
};
use gatewren_base::config::RuntimeKind;
use gatewren_base::sys::{cgroup2_mount, limiting_controllers, neutralise};

use super::super::error::{BackendError, ErrorKind};
use super::config::ContainerConfig;
use super::containers::LxcView;
use super::details::{ContainerState, engine_answer};

/// The timeout of short actions.
const SHORT: Duration = Duration::from_mins(1);

/// The timeout for copying or removing a whole container.
const LONG: Duration = Duration::from_hours(2);

/// A snapshot of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContainerSnapshot {
    /// The snapshot's name.
    pub name: SnapshotName,
    /// When it was made, RFC 3339.
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
    pub container: ContainerRef,
    /// The container's host name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Whether it starts when the host boots.
    pub autostart: bool,
    /// Whether its root is an unprivileged user on the host.
    pub unprivileged: bool,
    /// The container's settings.
    #[serde(flatten)]
    pub config: ContainerConfig,
    /// What Docker or Podman says about it.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "engine_answer"
    )]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub engine: Option<EngineFacts>,
    /// Why changed limits have no effect on this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Returns why changed limits of a container of LXC have no effect: they are limits of cgroups version 2, and the host
/// has some controllers only in version 1.
pub fn limits_note(container: &ContainerRef, changes: &DefinitionChanges) -> Option<String> {
    if container.runtime() != RuntimeKind::Lxc {
        return None;
    }
    let present = cgroup2_mount().map_or_else(Vec::new, |mount| limiting_controllers(&mount));
    limits_without_effect(changes, &present)
}

fn limits_without_effect(changes: &DefinitionChanges, present: &[&str]) -> Option<String> {
    let limits = [
        ("memory", changes.memory_limit_bytes.is_some()),
        ("cpu", changes.cpu_limit_percent.is_some()),
        ("pids", changes.processes_limit.is_some()),
    ];
    let missing = limits
        .iter()
        .filter(|(name, is_set)| *is_set && !present.contains(name));
    let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "saved, but without effect on this host: its cgroups version 2 has no controller for {} (hybrid or version 1 \
             cgroups); boot with systemd.unified_cgroup_hierarchy=1",
            missing.join(", ")
        )
    })
}

impl LxcView {
    /// Freezes or thaws a container; one already in the requested state is unchanged.
    pub async fn set_frozen(&self, name: &ContainerRef, frozen: bool) -> Result<(), BackendError> {
        let is = self.status(name).await?.state == ContainerState::Frozen;
        let action = match frozen {
            wanted if wanted == is => return Ok(()),
            true => ContainerAction::Freeze {},
            false => ContainerAction::Unfreeze {},
        };
        self.perform(name, action, SHORT).await.map(drop)
    }

    /// Sets whether a container starts when the host boots.
    pub async fn set_autostart(&self, name: &ContainerRef, on: bool) -> Result<(), BackendError> {
        self.perform(name, ContainerAction::Autostart { on }, SHORT)
            .await
            .map(drop)
    }

    /// Returns a container's definition.
    pub async fn definition(
        &self,
        container: &ContainerRef,
    ) -> Result<ContainerDefinition, BackendError> {
        if container.runtime() != RuntimeKind::Lxc {
            return self.engine_definition(container).await;
        }
        let config = self.config(container).await?;
        Ok(ContainerDefinition {
            engine: None,
            container: container.clone(),
            hostname: config.hostname.clone(),
            autostart: config.autostart,
            unprivileged: config.unprivileged,
            config,
            note: None,
        })
    }

    /// Returns the settings of a container of an engine, which has no definition of LXC.
    async fn engine_definition(
        &self,
        container: &ContainerRef,
    ) -> Result<ContainerDefinition, BackendError> {
        let details = self.info(container).await?;
        let limits = self.vitals(container).await.map(|vitals| vitals.usage);
        let limits = limits.unwrap_or_default();
        Ok(ContainerDefinition {
            container: container.clone(),
            hostname: None,
            autostart: details.autostart,
            unprivileged: details.unprivileged,
            config: ContainerConfig {
                memory_limit_bytes: limits.memory_limit_bytes,
                cpu_limit_percent: limits.cpu_limit_percent,
                ..ContainerConfig::default()
            },
            engine: details.engine,
            note: None,
        })
    }

    /// Changes its definition; the changes take effect at its next start, with Docker and Podman at once.
    pub async fn configure(
        &self,
        name: &ContainerRef,
        changes: DefinitionChanges,
    ) -> Result<(), BackendError> {
        self.perform(name, ContainerAction::Configure { changes }, SHORT)
            .await
            .map(drop)
    }

    /// Returns its snapshots, oldest first.
    pub async fn snapshots(
        &self,
        name: &ContainerRef,
    ) -> Result<Vec<ContainerSnapshot>, BackendError> {
        let text = self
            .perform(name, ContainerAction::Snapshots {}, SHORT)
            .await?;
        let facts: Result<Vec<SnapshotFacts>, _> = text.lines().map(serde_json::from_str).collect();
        let facts = facts.map_err(|cause| unreadable_answer(&cause))?;
        Ok(facts.into_iter().map(ContainerSnapshot::of).collect())
    }

    /// Makes a snapshot of a stopped container and returns its name.
    pub async fn snapshot(
        &self,
        name: &ContainerRef,
        comment: Option<String>,
    ) -> Result<SnapshotName, BackendError> {
        let answer = self
            .perform(name, ContainerAction::Snapshot { comment }, LONG)
            .await?;
        // LXC's own output precedes the name.
        let last = answer.split_whitespace().next_back().unwrap_or_default();
        last.parse().map_err(|cause| unreadable_answer(&cause))
    }

    /// Restores a stopped container from a snapshot.
    pub async fn restore(
        &self,
        name: &ContainerRef,
        snapshot: SnapshotName,
    ) -> Result<(), BackendError> {
        self.perform(name, ContainerAction::Restore { snapshot }, LONG)
            .await
            .map(drop)
    }

    /// Stops a running container, restores a snapshot (by default the newest), and starts it again
    /// if it ran. Returns the snapshot.
    pub async fn rebuild(
        &self,
        name: &ContainerRef,
        snapshot: Option<SnapshotName>,
        grace: Duration,
    ) -> Result<SnapshotName, BackendError> {
        let mut known = self.snapshots(name).await?;
        known.retain(|known| known.complete && snapshot.as_ref().is_none_or(|s| *s == known.name));
        let Some(ContainerSnapshot { name: snapshot, .. }) = known.pop() else {
            let words = format!("container '{name}' has no such snapshot to restore");
            let hint = "container_snapshot_list shows those that exist.".to_owned();
            return Err(BackendError {
                hint: Some(hint),
                ..BackendError::new(ErrorKind::Refused, words)
            });
        };
        let ran = self.status(name).await?.state != ContainerState::Stopped;
        self.stop(name, grace).await?;
        let restored = self.restore(name, snapshot.clone()).await;
        if ran {
            // Started again also if the restore failed.
            self.start(name).await?;
        }
        restored.map(|()| snapshot)
    }

    /// Deletes a snapshot.
    pub async fn forget(
        &self,
        name: &ContainerRef,
        snapshot: SnapshotName,
    ) -> Result<(), BackendError> {
        self.perform(name, ContainerAction::Forget { snapshot }, LONG)
            .await
            .map(drop)
    }

    /// Clones a stopped container under a name that the caller may access too.
    pub async fn clone_to(
        &self,
        name: &ContainerRef,
        to: &ContainerRef,
    ) -> Result<(), BackendError> {
        self.check_access(to)?;
        let to = to.clone();
        self.perform(name, ContainerAction::Clone { to }, LONG)
            .await
            .map(drop)
    }

    /// Creates a container from a template.
    pub async fn create(&self, name: &ContainerRef, template: String) -> Result<(), BackendError> {
        self.check_access(name)?;
        check_length(&template)?;
        let name = name.clone();
        let operation = Operation::ContainerCreate { name, template };
        self.ask(operation, LONG).await.map(drop)
    }

    /// Destroys a container with all its content.
    pub async fn destroy(
        &self,
        name: &ContainerRef,
        force: bool,
        snapshots: bool,
    ) -> Result<(), BackendError> {
        let action = ContainerAction::Destroy { force, snapshots };
        self.perform(name, action, LONG).await.map(drop)
    }

    /// Runs an action on a container and returns its output.
    pub(super) async fn perform(
        &self,
        name: &ContainerRef,
        action: ContainerAction,
        time: Duration,
    ) -> Result<String, BackendError> {
        if let ContainerAction::Snapshot {
            comment: Some(text),
        } = &action
        {
            check_length(text)?;
        }
        let operation = |container| Operation::ContainerAction { container, action };
        self.ask_container(name, operation, time).await
    }

    /// The caller must have access to the name of a new container. Otherwise the result would
    /// reveal which inaccessible names are taken.
    fn check_access(&self, name: &ContainerRef) -> Result<(), BackendError> {
        if self.shows(name) {
            return Ok(());
        }
        let words = format!("a container '{name}' would not be within this agent's reach");
        Err(BackendError::new(ErrorKind::Refused, words))
    }
}

impl ContainerSnapshot {
    fn of(facts: SnapshotFacts) -> Self {
        Self {
            name: facts.name,
            complete: facts.made.is_some(),
            made: facts.made,
            comment: facts
                .comment
                .map(|comment| neutralise(&comment).into_owned()),
        }
    }
}

/// Rejects a text too long for a message to the helper; the helper validates all others.
pub fn check_length(text: &str) -> Result<(), BackendError> {
    const MOST_BYTES: usize = 4096;
    if text.len() <= MOST_BYTES {
        return Ok(());
    }
    let words = format!("a name or a comment may have at most {MOST_BYTES} bytes");
    Err(BackendError::new(ErrorKind::Refused, words))
}

/// Returns the error for an answer of the helper that cannot be parsed.
pub fn unreadable_answer(cause: &dyn std::fmt::Display) -> BackendError {
    let words = format!("the helper's answer about containers is invalid: {cause}");
    BackendError::new(ErrorKind::Failed, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_whose_controller_is_not_in_version_2_has_a_note() {
        let changes = DefinitionChanges {
            memory_limit_bytes: Some(1),
            processes_limit: Some(1),
            ..DefinitionChanges::default()
        };
        let note = limits_without_effect(&changes, &["cpu", "pids"]).unwrap();
        assert!(note.contains("no controller for memory ("), "{note}");
        assert_eq!(limits_without_effect(&changes, &["memory", "pids"]), None);
        let hostname = DefinitionChanges::default();
        assert_eq!(limits_without_effect(&hostname, &[]), None);
    }
}
