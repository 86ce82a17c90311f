//! The host's containers, through the helper.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::helper_client::{
    Capture, ContainerRef, ContainerUsage, EngineFacts, FinishedOperation, HelperClient,
    MeasuredContainer, Operation, OperationEnd, OperationLimits, Vitals,
};
use gatewren_base::config::{Reach, RuntimeKind};

use super::super::access_filter::{AccessFilter, unmask_error};
use super::super::error::{BackendError, ErrorKind};
use super::super::long_work::{CallJob, LongOperation, ask_long};
use super::super::os_release::OsRelease;
use super::super::request::{ask, limits};
use super::config::ContainerConfig;
use super::details::{ContainerDetails, ContainerState, ContainerStatus};
use super::events::ContainerEvents;
use super::listing::ContainerListing;
use super::readings::UsageReadings;

/// The timeout of a query; the tools answer in milliseconds unless the host has a problem.
pub(super) const QUESTION_TIME: Duration = Duration::from_secs(20);

/// The timeout of a start, and of a stop beyond its grace period.
const CHANGE_TIME: Duration = Duration::from_mins(1);

/// The timeout for counting the bytes of a root file system; after it they stay unknown.
const DISK_TIME: Duration = Duration::from_secs(5);

/// How much of that output is kept, in bytes.
const DISK_CAPTURE: Capture = Capture {
    head: 1024,
    tail: 0,
};

/// Access to the host's containers; queries and actions need a view.
#[derive(Debug, Clone)]
pub struct Lxc {
    helper: HelperClient,
    readings: Arc<UsageReadings>,
}

/// The containers that a caller may access. Inaccessible containers behave like missing ones. A
/// clone is cheap.
#[derive(Debug, Clone)]
pub struct LxcView {
    pub(super) helper: HelperClient,
    pub(super) access: AccessFilter,
    pub(super) reference: String,
    pub(super) readings: Arc<UsageReadings>,
}

/// What was asked about a container.
pub(super) struct ContainerFacts {
    pub(super) status: ContainerStatus,
    /// Its definition, if it is one of LXC and that is wanted.
    pub(super) config: Option<ContainerConfig>,
    pub(super) os: Option<OsRelease>,
}

impl Lxc {
    /// Returns the containers that `helper` sees.
    pub fn new(helper: HelperClient) -> Self {
        Self {
            helper,
            readings: Arc::default(),
        }
    }

    /// Returns those that a caller may access; `reference` identifies its calls in the helper's
    /// log.
    pub fn view_for(&self, reach: &Reach, reference: &str) -> LxcView {
        LxcView {
            helper: self.helper.clone(),
            access: AccessFilter::of(reach),
            reference: reference.to_owned(),
            readings: Arc::clone(&self.readings),
        }
    }
}

impl LxcView {
    /// Returns all references, sorted. Containers with names that gatewren's tools reject are left out.
    pub async fn list(&self) -> Result<Vec<ContainerRef>, BackendError> {
        self.listing().await.map(|listing| listing.containers)
    }

    /// Returns all references, and the runtimes whose containers are unknown now.
    pub async fn listing(&self) -> Result<ContainerListing, BackendError> {
        let text = self.ask(Operation::ContainerList {}, QUESTION_TIME).await?;
        let mut listing = ContainerListing::parse(&text);
        listing.containers.retain(|name| self.access.shows(name));
        Ok(listing)
    }

    /// Returns a container's status, as LXC reports it.
    pub async fn status(&self, name: &ContainerRef) -> Result<ContainerStatus, BackendError> {
        let operation = |container| Operation::ContainerInfo { container };
        let text = self.ask_container(name, operation, QUESTION_TIME).await?;
        let unclear = || {
            BackendError::new(
                ErrorKind::Failed,
                format!("lxc-info does not show the state of '{name}'"),
            )
        };
        ContainerStatus::parse(&text).ok_or_else(unclear)
    }

    /// Returns all details of a container.
    pub async fn info(&self, name: &ContainerRef) -> Result<ContainerDetails, BackendError> {
        self.info_with(name, None).await
    }

    /// Does the same, with its counters if they have been read already.
    pub(super) async fn info_with(
        &self,
        name: &ContainerRef,
        counted: Option<&MeasuredContainer>,
    ) -> Result<ContainerDetails, BackendError> {
        let is_lxc = name.runtime() == RuntimeKind::Lxc;
        let config = async {
            if is_lxc {
                self.config(name).await.map(Some)
            } else {
                Ok(None)
            }
        };
        let (status, config, os) = tokio::join!(self.status(name), config, self.os_release(name));
        let (status, config) = (status?, config?);
        let facts = ContainerFacts { status, config, os };
        Ok(self.details(name, facts, counted).await)
    }

    /// Returns the details of a container by what was asked about it, and its counters if they have been read already.
    pub(super) async fn details(
        &self,
        name: &ContainerRef,
        facts: ContainerFacts,
        counted: Option<&MeasuredContainer>,
    ) -> ContainerDetails {
        let ContainerFacts { status, config, os } = facts;
        let engine = status.engine.map(|facts| self.visible_facts(facts));
        let counted = counted.filter(|counted| status.init_pid == Some(counted.init_pid));
        let usage = match (status.init_pid, counted) {
            // A container that has just stopped uses nothing.
            (None, _) => Ok(ContainerUsage::default()),
            (Some(_), Some(counted)) => Ok(counted.usage),
            (Some(_), None) => self.vitals(name).await.map(|vitals| vitals.usage),
        };
        let usage = usage.unwrap_or_default();
        ContainerDetails {
            name: name.clone(),
            runtime: name.runtime().prefix(),
            parent: name.outer(),
            hostname: config.as_ref().and_then(|config| config.hostname.clone()),
            state: status.state,
            init_pid: status.init_pid,
            addresses: status.addresses,
            os,
            autostart: match &engine {
                Some(facts) => facts.starts_by_itself(),
                None => config.as_ref().is_some_and(|config| config.autostart),
            },
            unprivileged: config.as_ref().is_some_and(|config| config.unprivileged),
            memory_bytes: usage.memory_bytes,
            cpu_usage_us: usage.cpu_usage_us,
            pids: usage.pids,
            config,
            disk_bytes: None,
            engine,
        }
    }

    /// Removes the host's paths from an engine's facts for a caller that may not see the host.
    pub(super) fn visible_facts(&self, mut facts: EngineFacts) -> EngineFacts {
        if self.access.host().is_err() {
            for mount in &mut facts.mounts {
                mount.source = None;
            }
            if let Some(compose) = &mut facts.compose {
                compose.config_files.clear();
            }
        }
        facts
    }

    /// Returns the size of a root file system in bytes; `None` if counting takes more than five
    /// seconds.
    pub async fn disk_bytes(&self, name: &ContainerRef) -> Option<u64> {
        let operation = Operation::ContainerDisk {
            container: self.access.name(name),
        };
        let counted = self
            .helper
            .run(operation, limits(DISK_TIME), &self.reference, DISK_CAPTURE)
            .await;
        let counted = counted.ok()?;
        // `du` fails if a file disappears while it counts, but still prints the sum.
        let OperationEnd::Exited { .. } = counted.ending else {
            return None;
        };
        let sum = counted.stdout.text_lossy();
        sum.split_whitespace().next()?.parse().ok()
    }

    /// Returns the kernel's facts about a running container.
    pub async fn vitals(&self, name: &ContainerRef) -> Result<Vitals, BackendError> {
        let operation = |name| Operation::ContainerVitals {
            container: Some(name),
        };
        let text = self.ask_container(name, operation, QUESTION_TIME).await?;
        let found: Vec<Vitals> = read_lines(&text)?;
        let ended = || {
            let words = format!("container '{name}' is not running; start it first");
            BackendError::new(ErrorKind::NotRunning, words)
        };
        found.into_iter().next().ok_or_else(ended)
    }

    /// Returns the facts, without the usage, about all containers that [`Self::status`] has found
    /// running and that still run. Cheap: LXC is not asked.
    pub async fn all_vitals(&self) -> Result<Vec<Vitals>, BackendError> {
        let operation = Operation::ContainerVitals { container: None };
        let mut all: Vec<Vitals> = read_lines(&self.ask(operation, QUESTION_TIME).await?)?;
        all.retain(|vitals| self.access.shows(&vitals.container));
        Ok(all)
    }

    /// Returns the counters of these, in one request. Cheap: no runtime is asked, and ports and addresses are not read.
    pub async fn counters(&self) -> Result<Vec<MeasuredContainer>, BackendError> {
        let operation = Operation::ContainerCounters {};
        let text = self.ask(operation, QUESTION_TIME).await?;
        let mut all: Vec<MeasuredContainer> = read_lines(&text)?;
        self.readings.keep(&all);
        all.retain(|measured| self.access.shows(&measured.container));
        Ok(all)
    }

    /// Starts a container; a running one is unchanged.
    pub async fn start(&self, name: &ContainerRef) -> Result<(), BackendError> {
        match self.status(name).await?.state {
            ContainerState::Running | ContainerState::Starting => return Ok(()),
            ContainerState::Frozen => return Err(frozen(name)),
            ContainerState::Stopped | ContainerState::Stopping => {}
        }
        let operation = |container| Operation::ContainerStart { container };
        self.ask_container(name, operation, CHANGE_TIME)
            .await
            .map(drop)
    }

    /// Asks a container to stop and forces it after `grace`; a stopped one is unchanged.
    pub async fn stop(&self, name: &ContainerRef, grace: Duration) -> Result<(), BackendError> {
        self.stop_as_job(name, grace, None).await
    }

    /// Like `stop`, run as a job during the grace period.
    pub async fn stop_as_job(
        &self,
        name: &ContainerRef,
        grace: Duration,
        job: Option<CallJob>,
    ) -> Result<(), BackendError> {
        if self.status(name).await?.state == ContainerState::Stopped {
            return Ok(());
        }
        let grace_s = u32::try_from(grace.as_secs()).unwrap_or(u32::MAX);
        let container = self.access.name(name);
        let asked = container.clone();
        let operation = Operation::ContainerStop { container, grace_s };
        let long = LongOperation::new(operation, grace.saturating_add(CHANGE_TIME));
        let stopped = ask_long(&self.helper, long, job, &self.reference).await;
        unmask_error(name, &asked, stopped.map(drop))
    }

    /// Stops a container and starts it again; a stopped one is started.
    pub async fn restart(&self, name: &ContainerRef, grace: Duration) -> Result<(), BackendError> {
        self.stop(name, grace).await?;
        self.start(name).await
    }

    /// Subscribes to events of containers: changes of state, new containers, new definitions.
    ///
    /// # Errors
    /// Also when the caller cannot access all containers, because any container may have events.
    pub async fn events(&self) -> Result<ContainerEvents, BackendError> {
        self.access.everything()?;
        // A monitor runs on: neither a timeout nor an output limit applies.
        let limits = OperationLimits {
            output_bytes: u64::MAX,
            ..limits(Duration::MAX)
        };
        let running = self
            .helper
            .start(Operation::ContainerEvents {}, limits, &self.reference)
            .await?;
        Ok(ContainerEvents::of(running))
    }

    /// Returns a container's definition.
    pub(super) async fn config(
        &self,
        name: &ContainerRef,
    ) -> Result<ContainerConfig, BackendError> {
        let operation = |container| Operation::ContainerConfig { container };
        let text = self.ask_container(name, operation, QUESTION_TIME).await?;
        Ok(ContainerConfig::parse(&text))
    }

    /// Returns `None` for a container without the file, such as a busybox.
    async fn os_release(&self, name: &ContainerRef) -> Option<OsRelease> {
        let operation = |container| Operation::ContainerOsRelease { container };
        let text = self
            .ask_container(name, operation, QUESTION_TIME)
            .await
            .ok()?;
        OsRelease::parse_nonempty(&text)
    }

    /// Runs an operation on one container.
    pub(super) async fn ask_container(
        &self,
        name: &ContainerRef,
        operation: impl FnOnce(ContainerRef) -> Operation,
        time: Duration,
    ) -> Result<String, BackendError> {
        let asked = self.access.name(name);
        let answer = self.ask(operation(asked.clone()), time).await;
        unmask_error(name, &asked, answer)
    }

    /// Runs an operation and returns its output.
    pub(super) async fn ask(
        &self,
        operation: Operation,
        time: Duration,
    ) -> Result<String, BackendError> {
        ask(&self.helper, operation, time, &self.reference).await
    }

    /// Runs an operation and returns its complete result.
    pub(super) async fn run(
        &self,
        operation: Operation,
        limits: OperationLimits,
        capture: Capture,
    ) -> Result<FinishedOperation, BackendError> {
        let helper = &self.helper;
        Ok(helper
            .run(operation, limits, &self.reference, capture)
            .await?)
    }

    /// Checks that the caller may see all containers.
    pub(super) fn check_sees_all(&self) -> Result<(), BackendError> {
        self.access.everything()
    }

    /// Returns the view of all containers, to find out what the caller must not see the existence of.
    pub(super) fn unfiltered(&self) -> Self {
        Self {
            access: AccessFilter::of(&Reach::everything()),
            ..self.clone()
        }
    }

    /// Whether the caller may access a container.
    pub(super) fn shows(&self, name: &ContainerRef) -> bool {
        self.access.shows(name)
    }

    /// Returns the name under which a container is queried.
    pub(super) fn query_name(&self, name: &ContainerRef) -> ContainerRef {
        self.access.name(name)
    }
}

pub(super) fn read_lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, BackendError> {
    let all = text.lines().map(serde_json::from_str);
    all.collect::<Result<_, _>>().map_err(|cause| {
        let words = format!("the helper's answer about containers is invalid: {cause}");
        BackendError::new(ErrorKind::Failed, words)
    })
}

fn frozen(name: &ContainerRef) -> BackendError {
    BackendError::new(
        ErrorKind::NotRunning,
        format!("container '{name}' is frozen; let it go on first (container_unfreeze)"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::lab::ContainerLab;
    use super::super::overview::StateAndRoot;
    use super::*;
    use gatewren_base::config::Space;

    const NO_GRACE: Duration = Duration::ZERO;

    #[tokio::test]
    async fn a_real_container_lives_through_its_states() {
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let (child, helper) = lab.helper();
        let container = lab.create("states", "lxc.start.auto = 1\n");
        let lxc = Lxc::new(helper).view_for(&Reach::everything(), "test");
        let name = container.name.parse().unwrap();
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
        assert!(
            first.memory_bytes > Some(0) && first.cpu_usage_us > Some(0),
            "{first:?}"
        );
        assert!(first.pids > Some(0), "{first:?}");
        lxc.restart(&name, NO_GRACE).await.unwrap();
        let second = lxc.status(&name).await.unwrap();
        assert_ne!(second.init_pid, first.init_pid);
        let rootfs = lxc.definition(&name).await.unwrap().config.rootfs;
        assert!(rootfs.is_some());
        let at_once = lxc.states_and_roots().await.unwrap();
        let state = ContainerState::Running;
        assert_eq!(at_once[&name], StateAndRoot { state, rootfs });

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
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let (child, helper) = lab.helper();
        let lxc = Lxc::new(helper).view_for(&Reach::everything(), "test");
        let name = "nobody".parse().unwrap();
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

    #[tokio::test]
    async fn a_container_beyond_reach_is_as_one_that_does_not_exist() {
        let Some(lab) = ContainerLab::find() else {
            return;
        };
        let (child, helper) = lab.helper();
        let (near, far) = (lab.create("near", ""), lab.create("far", ""));
        let lxc = Lxc::new(helper);
        let whole = lxc.view_for(&Reach::everything(), "test");
        let space = Space {
            containers: vec![near.name.parse().unwrap()],
            host: true,
        };
        let within = lxc.view_for(&Reach::of(&space), "test");
        let name = |container: &str| -> ContainerRef { container.parse().unwrap() };
        assert_eq!(within.list().await.unwrap(), [name(&near.name)]);
        assert!(whole.list().await.unwrap().contains(&name(&far.name)));

        let (nobody, other) = (name("nobody"), far.name.clone());
        for (far, none) in [
            (
                within.info(&name(&far.name)).await.map(drop),
                whole.info(&nobody).await.map(drop),
            ),
            (
                within.vitals(&name(&far.name)).await.map(drop),
                whole.vitals(&nobody).await.map(drop),
            ),
            (
                within.start(&name(&far.name)).await,
                whole.start(&nobody).await,
            ),
            (
                within.stop(&name(&far.name), NO_GRACE).await,
                whole.stop(&nobody, NO_GRACE).await,
            ),
        ] {
            let (far, none) = (far.unwrap_err(), none.unwrap_err());
            let renamed = far.message.replace(&other, "nobody");
            assert_eq!((far.kind, renamed), (none.kind, none.message));
        }
        assert_eq!(within.disk_bytes(&name(&far.name)).await, None);
        assert_eq!(within.events().await.unwrap_err().kind, ErrorKind::Refused);
        let state = whole.status(&name(&far.name)).await.unwrap().state;
        assert_eq!(state, ContainerState::Stopped);
        child.stop().await;
    }
}
