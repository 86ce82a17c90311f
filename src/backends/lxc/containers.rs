//! The containers of the box, through the helper.

use std::time::Duration;

use tracing::debug;

use crate::helper_client::{ContainerName, Helper, Limits, Operation, Usage, Vitals};

use super::super::error::{BackendError, ErrorKind};
use super::super::os_release::OsRelease;
use super::ask::{ask, limits};
use super::config::ContainerConfig;
use super::details::{ContainerDetails, ContainerState, ContainerStatus};
use super::events::ContainerEvents;

/// How long a question may take; the tools answer in milliseconds unless the box is in trouble.
const QUESTION_TIME: Duration = Duration::from_secs(20);

/// How long a start may take, and a stop beyond its grace.
const CHANGE_TIME: Duration = Duration::from_mins(1);

/// How long the bytes of a root file system may be counted; then they stay unknown.
const DISK_TIME: Duration = Duration::from_secs(5);

/// The containers of the box; a clone is a pointer.
#[derive(Debug, Clone)]
pub struct Lxc {
    helper: Helper,
    reference: String,
}

impl Lxc {
    /// The containers that `helper` sees.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            reference: "lxc".to_owned(),
        }
    }

    /// The same containers, with another name for our calls in the helper's log.
    #[must_use]
    pub fn named(&self, reference: &str) -> Self {
        Self {
            helper: self.helper.clone(),
            reference: reference.to_owned(),
        }
    }

    /// All of them by name, sorted. Names that no tool of ours would take are left out.
    pub async fn list(&self) -> Result<Vec<ContainerName>, BackendError> {
        let text = self.ask(Operation::ContainerList {}, QUESTION_TIME).await?;
        let mut names: Vec<ContainerName> = text
            .split_whitespace()
            .filter_map(|name| name.parse().ok())
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// How one stands, as LXC says.
    pub async fn status(&self, name: &ContainerName) -> Result<ContainerStatus, BackendError> {
        let operation = Operation::ContainerInfo {
            container: name.clone(),
        };
        let text = self.ask(operation, QUESTION_TIME).await?;
        let unclear = || {
            BackendError::new(
                ErrorKind::Failed,
                format!("lxc-info says no state of '{name}'"),
            )
        };
        ContainerStatus::parse(&text).ok_or_else(unclear)
    }

    /// One in full.
    pub async fn info(&self, name: &ContainerName) -> Result<ContainerDetails, BackendError> {
        let (status, config, os) =
            tokio::join!(self.status(name), self.config(name), self.os_release(name));
        let (status, config) = (status?, config?);
        let usage = match status.init_pid {
            // One that has just ended uses nothing any more.
            Some(_) => self.vitals(name).await.map(|vitals| vitals.usage),
            None => Ok(Usage::default()),
        };
        let usage = usage.unwrap_or_default();
        Ok(ContainerDetails {
            name: name.clone(),
            hostname: config.hostname.clone(),
            state: status.state,
            init_pid: status.init_pid,
            addresses: status.addresses,
            os,
            autostart: config.autostart,
            unprivileged: config.unprivileged,
            memory_bytes: usage.memory_bytes,
            cpu_usage_us: usage.cpu_usage_us,
            pids: usage.pids,
            config: Some(config),
            disk_bytes: None,
        })
    }

    /// What the root file system of one holds, in bytes; nothing if it cannot be counted in five seconds.
    pub async fn disk_bytes(&self, name: &ContainerName) -> Option<u64> {
        let operation = Operation::ContainerDisk {
            container: name.clone(),
        };
        let counted = self.ask(operation, DISK_TIME).await.ok()?;
        counted.split_whitespace().next()?.parse().ok()
    }

    /// What the kernel shows of one that runs.
    pub async fn vitals(&self, name: &ContainerName) -> Result<Vitals, BackendError> {
        let found = self.read_vitals(Some(name)).await?;
        let ended = || {
            let words = format!("container '{name}' is not running; start it first");
            BackendError::new(ErrorKind::NotRunning, words)
        };
        found.into_iter().next().ok_or_else(ended)
    }

    /// What the kernel shows of this one, or of all that run, sorted by name. One of which nothing can be
    /// learnt does not hide the others.
    pub async fn vitals_of(
        &self,
        container: Option<&ContainerName>,
    ) -> Result<Vec<Vitals>, BackendError> {
        if let Some(name) = container {
            return Ok(vec![self.vitals(name).await?]);
        }
        let mut all = Vec::new();
        for name in self.list().await? {
            match self.vitals(&name).await {
                Ok(vitals) => all.push(vitals),
                Err(cause) if cause.kind == ErrorKind::Unavailable => return Err(cause),
                Err(cause) => debug!(container = %name, %cause, "left out of the measurement"),
            }
        }
        Ok(all)
    }

    /// What the kernel shows of all that [`Self::status`] has found running and that still run; cheap, for
    /// LXC is not asked.
    pub async fn all_vitals(&self) -> Result<Vec<Vitals>, BackendError> {
        self.read_vitals(None).await
    }

    /// All of them in full, sorted by name. One of which nothing can be learnt does not hide the others.
    pub async fn all(&self) -> Result<Vec<ContainerDetails>, BackendError> {
        let mut all = Vec::new();
        for name in self.list().await? {
            match self.info(&name).await {
                Ok(details) => all.push(ContainerDetails {
                    config: None,
                    ..details
                }),
                Err(cause) if cause.kind == ErrorKind::Unavailable => return Err(cause),
                Err(cause) => debug!(container = %name, %cause, "left out of the list"),
            }
        }
        Ok(all)
    }

    /// Starts one; one that runs already is left alone.
    pub async fn start(&self, name: &ContainerName) -> Result<(), BackendError> {
        match self.status(name).await?.state {
            ContainerState::Running | ContainerState::Starting => return Ok(()),
            ContainerState::Frozen => return Err(frozen(name)),
            ContainerState::Stopped | ContainerState::Stopping => {}
        }
        let operation = Operation::ContainerStart {
            container: name.clone(),
        };
        self.ask(operation, CHANGE_TIME).await.map(drop)
    }

    /// Asks one to stop, and forces it after `grace`; a stopped one is left alone.
    pub async fn stop(&self, name: &ContainerName, grace: Duration) -> Result<(), BackendError> {
        if self.status(name).await?.state == ContainerState::Stopped {
            return Ok(());
        }
        let grace_s = u32::try_from(grace.as_secs()).unwrap_or(u32::MAX);
        let operation = Operation::ContainerStop {
            container: name.clone(),
            grace_s,
        };
        self.ask(operation, grace.saturating_add(CHANGE_TIME))
            .await
            .map(drop)
    }

    /// Stops one and starts it again; a stopped one is started.
    pub async fn restart(&self, name: &ContainerName, grace: Duration) -> Result<(), BackendError> {
        self.stop(name, grace).await?;
        self.start(name).await
    }

    /// What happens to containers from now on: changes of state, appearances, new definitions.
    pub async fn events(&self) -> Result<ContainerEvents, BackendError> {
        // A monitor stays: neither time nor what it prints bounds it.
        let limits = Limits {
            output_bytes: u64::MAX,
            ..limits(Duration::MAX)
        };
        let running = self
            .helper
            .start(Operation::ContainerEvents {}, limits, &self.reference)
            .await?;
        Ok(ContainerEvents::of(running))
    }

    async fn read_vitals(
        &self,
        container: Option<&ContainerName>,
    ) -> Result<Vec<Vitals>, BackendError> {
        let operation = Operation::ContainerVitals {
            container: container.cloned(),
        };
        let text = self.ask(operation, QUESTION_TIME).await?;
        let all = text.lines().map(serde_json::from_str);
        all.collect::<Result<_, _>>().map_err(|cause| {
            let words = format!("the helper's words on containers make no sense: {cause}");
            BackendError::new(ErrorKind::Failed, words)
        })
    }

    async fn config(&self, name: &ContainerName) -> Result<ContainerConfig, BackendError> {
        let operation = Operation::ContainerConfig {
            container: name.clone(),
        };
        let text = self.ask(operation, QUESTION_TIME).await?;
        Ok(ContainerConfig::parse(&text))
    }

    /// Nothing for a container without one, such as a busybox.
    async fn os_release(&self, name: &ContainerName) -> Option<OsRelease> {
        let operation = Operation::ContainerOsRelease {
            container: name.clone(),
        };
        let text = self.ask(operation, QUESTION_TIME).await.ok()?;
        (!text.trim().is_empty()).then(|| OsRelease::parse(&text))
    }

    async fn ask(&self, operation: Operation, time: Duration) -> Result<String, BackendError> {
        ask(&self.helper, operation, time, &self.reference).await
    }
}

fn frozen(name: &ContainerName) -> BackendError {
    BackendError::new(
        ErrorKind::NotRunning,
        format!("container '{name}' is frozen; unfreeze it first (lxc-unfreeze -n {name})"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::lab::Lab;
    use super::*;

    const NO_GRACE: Duration = Duration::ZERO;

    #[tokio::test]
    async fn a_real_container_lives_through_its_states() {
        let Some(lab) = Lab::find() else { return };
        let (child, helper) = lab.helper();
        let container = lab.create("states", "lxc.start.auto = 1\n");
        let (lxc, name) = (Lxc::new(helper), container.name.parse().unwrap());
        assert!(lxc.list().await.unwrap().contains(&name));
        let details = lxc.info(&name).await.unwrap();
        assert_eq!(
            (details.state, details.init_pid),
            (ContainerState::Stopped, None)
        );
        assert!(details.autostart && !details.unprivileged);
        lxc.stop(&name, NO_GRACE).await.unwrap();

        lxc.start(&name).await.unwrap();
        lxc.start(&name).await.unwrap();
        let first = lxc.info(&name).await.unwrap();
        assert_eq!(first.state, ContainerState::Running);
        assert!(lxc.disk_bytes(&name).await > Some(100_000));
        assert!(
            first.memory_bytes > Some(0) && first.cpu_usage_us > Some(0),
            "{first:?}"
        );
        assert!(first.pids > Some(0), "{first:?}");
        lxc.restart(&name, NO_GRACE).await.unwrap();
        let second = lxc.status(&name).await.unwrap();
        assert_ne!(second.init_pid, first.init_pid);

        container.lxc("lxc-freeze", &[]);
        let error = lxc.start(&name).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotRunning);
        container.lxc("lxc-unfreeze", &[]);
        lxc.stop(&name, NO_GRACE).await.unwrap();
        assert_eq!(
            lxc.status(&name).await.unwrap().state,
            ContainerState::Stopped
        );
        assert!(
            lxc.all()
                .await
                .unwrap()
                .iter()
                .any(|details| details.name == name)
        );
        child.stop().await;
    }

    #[tokio::test]
    async fn a_container_that_does_not_exist_is_not_found() {
        let Some(lab) = Lab::find() else { return };
        let (child, helper) = lab.helper();
        let (lxc, name) = (Lxc::new(helper), "nobody".parse().unwrap());
        for error in [
            lxc.info(&name).await.unwrap_err(),
            lxc.start(&name).await.unwrap_err(),
            lxc.stop(&name, NO_GRACE).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
            assert!(error.to_string().contains("nobody"), "{error}");
        }
        child.stop().await;
    }
}
