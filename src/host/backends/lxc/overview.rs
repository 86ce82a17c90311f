//! All containers at once: their details, and their usage.

use std::collections::BTreeMap;

use tokio::task::JoinSet;
use tracing::debug;

use super::super::error::{BackendError, ErrorKind};
use super::super::os_release::OsRelease;
use super::super::request::{answer, limits};
use super::config::ContainerConfig;
use super::containers::{ContainerFacts, LxcView, QUESTION_TIME, read_lines};
use super::details::{ContainerDetails, ContainerState, ContainerStatus};
use crate::helper_client::{
    Capture, ContainerRef, ContainerUsage, MeasuredContainer, Operation, OperationLimits,
    OverviewEntry,
};
use gatewren_base::sys::on_same_behalf;

/// The maximum number of containers that are asked about concurrently. Engines compute their answers side by side.
const AT_ONCE: usize = 4;

/// How much of the helper's answer about all containers is kept, in bytes: its texts, and ten thousand names. A longer
/// one is an error.
const OVERVIEW_CAPTURE: Capture = Capture {
    head: 8 * 1024 * 1024,
    tail: 0,
};

/// The state of a container of LXC, and where its files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateAndRoot {
    /// Its state.
    pub state: ContainerState,
    /// Its root file system, as its definition names it.
    pub rootfs: Option<String>,
}

impl LxcView {
    /// Returns the states of containers of LXC and where their files are, in one request. Those that have to be asked
    /// about one by one are left out.
    pub async fn states_and_roots(
        &self,
    ) -> Result<BTreeMap<ContainerRef, StateAndRoot>, BackendError> {
        let found = self.overview().await?.into_iter().filter_map(|entry| {
            let config = ContainerConfig::parse(&entry.config?);
            let state = ContainerStatus::parse(&entry.info?)?.state;
            let rootfs = config.rootfs;
            Some((entry.container, StateAndRoot { state, rootfs }))
        });
        Ok(found.collect())
    }

    /// Returns all containers in detail, sorted by name. An unreadable one is left out.
    pub async fn all(&self) -> Result<Vec<ContainerDetails>, BackendError> {
        let found = self.overview().await?;
        // Afterwards, so that those that have just been found are counted.
        let counted = self.counters().await?.into_iter();
        let counted: BTreeMap<ContainerRef, MeasuredContainer> =
            counted.map(|one| (one.container.clone(), one)).collect();
        let mut all = Vec::new();
        let mut unasked = Vec::new();
        for entry in found {
            let name = entry.container;
            let Some(info) = entry.info else {
                unasked.push(name);
                continue;
            };
            let Some(status) = ContainerStatus::parse(&info) else {
                debug!(container = %name, "left out of the list: its state is not shown");
                continue;
            };
            let facts = ContainerFacts {
                status,
                config: entry.config.map(|text| ContainerConfig::parse(&text)),
                os: entry
                    .os_release
                    .and_then(|text| OsRelease::parse_nonempty(&text)),
            };
            let details = self.details(&name, facts, counted.get(&name)).await;
            all.push(ContainerDetails {
                config: None,
                ..details
            });
        }
        all.extend(self.ask_each(unasked, &counted).await?);
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Returns all references with what the helper finds out about each container at once.
    async fn overview(&self) -> Result<Vec<OverviewEntry>, BackendError> {
        let limits = OperationLimits {
            output_bytes: u64::try_from(OVERVIEW_CAPTURE.head).unwrap_or(u64::MAX),
            ..limits(QUESTION_TIME)
        };
        let operation = Operation::ContainerOverview {};
        let finished = self.run(operation, limits, OVERVIEW_CAPTURE).await?;
        let mut found: Vec<OverviewEntry> = read_lines(&answer(&finished)?)?;
        found.retain(|entry| self.access.shows(&entry.container));
        Ok(found)
    }

    /// Returns these containers in detail, each asked about by itself.
    async fn ask_each(
        &self,
        names: Vec<ContainerRef>,
        counted: &BTreeMap<ContainerRef, MeasuredContainer>,
    ) -> Result<Vec<ContainerDetails>, BackendError> {
        let mut waiting = names.into_iter();
        let mut asked = JoinSet::new();
        let mut all = Vec::new();
        loop {
            while asked.len() < AT_ONCE
                && let Some(name) = waiting.next()
            {
                let (view, counted) = (self.clone(), counted.get(&name).cloned());
                asked.spawn(on_same_behalf(async move {
                    let details = view.info_with(&name, counted.as_ref()).await;
                    (name, details)
                }));
            }
            match asked.join_next().await {
                None => break,
                Some(Ok((_, Ok(details)))) => all.push(ContainerDetails {
                    config: None,
                    ..details
                }),
                Some(Ok((_, Err(cause)))) if cause.kind == ErrorKind::Unavailable => {
                    return Err(cause);
                }
                Some(Ok((name, Err(cause)))) => {
                    debug!(container = %name, %cause, "left out of the list");
                }
                // A panic was reported when it happened.
                Some(Err(_)) => {}
            }
        }
        Ok(all)
    }

    /// Returns the usage of this container, or of all running ones. An unreadable container is left out of all.
    pub async fn usage_of(
        &self,
        container: Option<&ContainerRef>,
    ) -> Result<BTreeMap<ContainerRef, ContainerUsage>, BackendError> {
        if let Some(name) = container {
            return Ok([(name.clone(), self.vitals(name).await?.usage)].into());
        }
        let counted = self.counters().await?.into_iter();
        let mut all: BTreeMap<_, _> = counted.map(|one| (one.container, one.usage)).collect();
        // A helper that has just started has found none of them running yet.
        for name in self.list().await? {
            if all.contains_key(&name) {
                continue;
            }
            match self.vitals(&name).await {
                Ok(vitals) => _ = all.insert(name, vitals.usage),
                Err(cause) if cause.kind == ErrorKind::Unavailable => return Err(cause),
                Err(cause) => debug!(container = %name, %cause, "left out of the measurement"),
            }
        }
        Ok(all)
    }
}
