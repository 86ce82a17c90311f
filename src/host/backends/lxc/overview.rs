//! All containers at once: their details, and their usage.

use std::collections::BTreeMap;

use tracing::debug;

use super::super::error::{BackendError, ErrorKind};
use super::containers::LxcView;
use super::details::ContainerDetails;
use crate::helper_client::{ContainerRef, ContainerUsage, MeasuredContainer};

impl LxcView {
    /// Returns all containers in detail, sorted by name. An unreadable one is left out.
    pub async fn all(&self) -> Result<Vec<ContainerDetails>, BackendError> {
        let counted = self.counters().await?.into_iter();
        let counted: BTreeMap<ContainerRef, MeasuredContainer> =
            counted.map(|one| (one.container.clone(), one)).collect();
        let mut all = Vec::new();
        for name in self.list().await? {
            match self.info_with(&name, counted.get(&name)).await {
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
