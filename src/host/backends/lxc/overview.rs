//! All containers at once: their details, and their usage.

use std::collections::BTreeMap;

use tokio::task::JoinSet;
use tracing::debug;

use super::super::error::{BackendError, ErrorKind};
use super::containers::LxcView;
use super::details::ContainerDetails;
use crate::helper_client::{ContainerRef, ContainerUsage, MeasuredContainer};
use gatewren_base::sys::on_same_behalf;

/// The maximum number of containers that are asked about concurrently. Engines compute their answers side by side.
const AT_ONCE: usize = 4;

impl LxcView {
    /// Returns all containers in detail, sorted by name. An unreadable one is left out.
    pub async fn all(&self) -> Result<Vec<ContainerDetails>, BackendError> {
        let counted = self.counters().await?.into_iter();
        let counted: BTreeMap<ContainerRef, MeasuredContainer> =
            counted.map(|one| (one.container.clone(), one)).collect();
        let mut waiting = self.list().await?.into_iter();
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
        all.sort_by(|a, b| a.name.cmp(&b.name));
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
