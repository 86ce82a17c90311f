//! The known containers, refreshed as cheaply as each event allows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backends::{
    AwayRuntime, BackendError, ContainerDetails, ContainerListener, ContainerListing, ContainerRef,
    ContainerState, ContainerStatus, ErrorKind, LxcView, Vitals,
};

use super::container_facts;

/// The timeout of the queries about one container; after it the entry stays as it was.
const ONE_LOOK: Duration = Duration::from_secs(5);

/// The maximum number of containers that are queried concurrently; LXC's tools are processes.
const AT_ONCE: usize = 4;

/// The maximum age of a container's configuration and operating system; after it a look reads them again.
const SLOW_FACTS: Duration = Duration::from_mins(10);

/// How long a possibly transient failure is kept out of the document.
const PATIENCE: Duration = Duration::from_secs(10);

/// How thorough a look is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookDepth {
    /// Which containers exist, and the kernel's data about running ones. LXC is queried only about those for which
    /// this contradicts the known state.
    Glance,
    /// In addition, the state of each container according to LXC.
    States,
}

/// The last known state of the containers.
#[derive(Debug)]
pub struct ObservedContainers {
    lxc: LxcView,
    known: BTreeMap<ContainerRef, ObservedContainer>,
    /// The runtimes that do not answer; what is known of their containers is kept.
    away: Vec<AwayRuntime>,
    failing_since: Option<Instant>,
    why_not: Option<String>,
}

#[derive(Debug)]
struct ObservedContainer {
    details: ContainerDetails,
    ports: Vec<ContainerListener>,
    /// When configuration and operating system were read; `None` if they must be read again.
    read_at: Option<Instant>,
    /// Whether the kernel's last data agrees with the known state.
    settled: bool,
}

/// One run of a container: its first process, or `None` if it does not run.
struct ContainerRun {
    init_pid: Option<u32>,
}

/// The result of the queries about one container.
enum QueryResult {
    Details(Box<ContainerDetails>),
    Status(Box<ContainerStatus>),
}

impl ObservedContainers {
    /// Creates an empty set.
    pub fn new(lxc: LxcView) -> Self {
        Self {
            lxc,
            known: BTreeMap::new(),
            away: Vec::new(),
            failing_since: None,
            why_not: None,
        }
    }

    /// Why containers cannot be observed on this host at present, if so.
    pub fn why_not(&self) -> Option<&str> {
        self.why_not.as_deref()
    }

    /// `/public/packageData`.
    pub fn document(&self) -> Value {
        let entry = |(name, known): (&ContainerRef, &ObservedContainer)| {
            let mut facts = container_facts::container(&known.details, &known.ports);
            if let Value::Object(facts) = &mut facts
                && self.is_away(name)
            {
                facts.insert("stale".to_owned(), Value::Bool(true));
            }
            (name.to_string(), facts)
        };
        Value::Object(self.known.iter().map(entry).collect())
    }

    /// Looks at all containers.
    ///
    /// # Errors
    /// When they cannot be listed. The known containers then stay, unless this host turns out to have none at all.
    pub async fn look(&mut self, how: LookDepth) -> Result<(), BackendError> {
        let listing = self.lxc.listing().await;
        self.update_availability(listing.as_ref().err());
        let ContainerListing { containers, away } = listing?;
        let names = containers;
        self.away = away;
        let away = self.away.clone();
        let is_away = |name: &ContainerRef| away.iter().any(|one| one.has(name));
        self.known
            .retain(|name, _| names.binary_search(name).is_ok() || is_away(name));
        self.take_vitals().await?;
        let settled = |known: &ObservedContainer| how == LookDepth::Glance && known.settled;
        let asked: BTreeSet<ContainerRef> = names
            .into_iter()
            .filter(|name| !self.known.get(name).is_some_and(settled))
            .collect();
        if asked.is_empty() {
            return Ok(());
        }
        let result = self.ask(asked).await;
        // The vitals of those that were found running only now.
        self.take_vitals().await.and(result)
    }

    fn is_away(&self, name: &ContainerRef) -> bool {
        self.away.iter().any(|one| one.has(name))
    }

    /// Applies reported state changes, then looks at the containers that changed.
    pub async fn apply_states(
        &mut self,
        states: &BTreeMap<ContainerRef, ContainerState>,
    ) -> Result<(), BackendError> {
        let mut asked = BTreeSet::new();
        for (name, state) in states {
            let known = self.known.get_mut(name);
            match known {
                Some(known) => {
                    known.details.state = *state;
                    if *state == ContainerState::Stopped {
                        // LXC may be slow to answer while it cleans up after a container.
                        known.clear_run();
                    } else {
                        asked.insert(name.clone());
                    }
                }
                None => drop(asked.insert(name.clone())),
            }
        }
        self.ask(asked).await
    }

    /// Looks at containers that were created, deleted or configured.
    pub async fn look_at_defined(
        &mut self,
        names: &BTreeSet<ContainerRef>,
    ) -> Result<(), BackendError> {
        for name in names {
            if let Some(known) = self.known.get_mut(name) {
                known.read_at = None;
            }
        }
        self.ask(names.clone()).await
    }

    /// Queries LXC about these containers, a few at a time.
    async fn ask(&mut self, names: BTreeSet<ContainerRef>) -> Result<(), BackendError> {
        let mut waiting = names.into_iter();
        let mut asked = JoinSet::new();
        let mut result = Ok(());
        loop {
            while asked.len() < AT_ONCE
                && let Some(name) = waiting.next()
            {
                asked.spawn(query_container(self.lxc.clone(), self.run_of(&name), name));
            }
            match asked.join_next().await {
                None => return result,
                Some(Ok((name, found))) => result = self.apply_result(name, found).and(result),
                // A panic was reported when it happened.
                Some(Err(_)) => {}
            }
        }
    }

    /// The current run of a container, if its slowly changing facts are fresh.
    fn run_of(&self, name: &ContainerRef) -> Option<ContainerRun> {
        let known = self.known.get(name)?;
        let fresh = known.read_at?.elapsed() < SLOW_FACTS;
        let init_pid = known.details.init_pid;
        fresh.then_some(ContainerRun { init_pid })
    }

    fn apply_result(
        &mut self,
        name: ContainerRef,
        found: Result<QueryResult, BackendError>,
    ) -> Result<(), BackendError> {
        match found {
            Ok(QueryResult::Details(details)) => {
                let ports = self.known.remove(&name).map(|known| known.ports);
                let known = ObservedContainer {
                    details: *details,
                    ports: ports.unwrap_or_default(),
                    read_at: Some(Instant::now()),
                    settled: false,
                };
                self.known.insert(name, known);
            }
            Ok(QueryResult::Status(status)) => {
                if let Some(known) = self.known.get_mut(&name) {
                    known.details.state = status.state;
                    known.details.addresses = status.addresses;
                    known.details.engine = status.engine.or(known.details.engine.take());
                    if status.init_pid.is_none() {
                        known.clear_run();
                    }
                }
            }
            // It was deleted between the list and the look, or its configuration was.
            Err(cause) if cause.kind == ErrorKind::NotFound => drop(self.known.remove(&name)),
            Err(cause) => return Err(cause),
        }
        Ok(())
    }

    /// Reads the kernel's data about the running containers.
    async fn take_vitals(&mut self) -> Result<(), BackendError> {
        let all = self.lxc.all_vitals().await?;
        let mut all: BTreeMap<_, _> = all.into_iter().map(|v| (v.container.clone(), v)).collect();
        for (name, known) in &mut self.known {
            known.take(all.remove(name));
        }
        Ok(())
    }

    /// Evaluates a listing for the whole host: a missing tool counts at once, no answer only after a while.
    fn update_availability(&mut self, failure: Option<&BackendError>) {
        let Some(cause) = failure else {
            self.failing_since = None;
            self.why_not = None;
            return;
        };
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let lasting = cause.kind == ErrorKind::Unavailable && !cause.retry;
        if lasting {
            self.known.clear();
        }
        if lasting || since.elapsed() > PATIENCE {
            self.why_not = Some(cause.to_string());
        }
    }
}

impl ObservedContainer {
    fn clear_run(&mut self) {
        self.details.init_pid = None;
        self.details.addresses.clear();
        self.ports.clear();
    }

    /// Applies the kernel's data about it, if the data agrees with the known state.
    fn take(&mut self, vitals: Option<Vitals>) {
        let details = &mut self.details;
        let runs = matches!(
            details.state,
            ContainerState::Running | ContainerState::Frozen
        );
        self.settled = match &vitals {
            Some(vitals) => runs && details.init_pid == Some(vitals.init_pid),
            None => details.state == ContainerState::Stopped,
        };
        let Some(vitals) = vitals.filter(|_| self.settled) else {
            return;
        };
        details.state = if vitals.frozen {
            ContainerState::Frozen
        } else {
            ContainerState::Running
        };
        details.addresses = vitals.addresses;
        self.ports = vitals.listeners;
        if vitals.shares_host_network {
            // These ports are the host's.
            self.ports.clear();
        }
    }
}

/// Queries one container: its state, and everything else unless it is still in the run `known`.
async fn query_container(
    lxc: LxcView,
    known: Option<ContainerRun>,
    name: ContainerRef,
) -> (ContainerRef, Result<QueryResult, BackendError>) {
    let looked = timeout(ONE_LOOK, async {
        if let Some(ContainerRun { init_pid }) = known {
            let status = lxc.status(&name).await?;
            if status.init_pid == init_pid {
                return Ok(QueryResult::Status(Box::new(status)));
            }
        }
        let details = lxc.info(&name).await?;
        Ok(QueryResult::Details(Box::new(details)))
    });
    let slow = |_| {
        let words = format!("the state of container '{name}' could not be read in time");
        BackendError::new(ErrorKind::Failed, words)
    };
    let found = looked.await.map_err(slow).and_then(|found| found);
    (name, found)
}
