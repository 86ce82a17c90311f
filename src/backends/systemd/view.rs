//! The units that are within somebody's reach: those that stand for a container elsewhere are not.

use std::collections::BTreeMap;

use super::super::error::BackendError;
use super::super::threshold::Threshold;
use super::events::UnitEvents;
use super::files::UnitFileState;
use super::manager::Systemd;
use super::unit::{Unit, UnitLine, UnitStatus};
use crate::config::Reach;
use crate::helper_client::UnitName;

/// The units within somebody's reach; a clone is a pointer.
#[derive(Debug, Clone)]
pub struct SystemdView {
    systemd: Systemd,
    threshold: Threshold,
}

impl Systemd {
    /// The units that are within reach.
    pub fn seen_by(&self, reach: &Reach) -> SystemdView {
        SystemdView {
            systemd: self.clone(),
            threshold: Threshold::of(reach),
        }
    }
}

impl SystemdView {
    /// Every loaded unit, sorted by name.
    ///
    /// # Errors
    /// `Unavailable` without a bus or systemd; `Refused` where the host is not within reach.
    pub async fn list(&self) -> Result<Vec<UnitLine>, BackendError> {
        self.threshold.host()?;
        let mut listed = self.systemd.list().await?;
        listed.retain(|line| self.shows(&line.name));
        Ok(listed)
    }

    /// A unit in full; one that is not loaded is loaded for it. Of one that stands for a container elsewhere is
    /// told what there is to tell of one for a container that does not exist.
    ///
    /// # Errors
    /// `NotFound` when there is no such unit; otherwise as [`Self::list`].
    pub async fn status(&self, name: &UnitName) -> Result<UnitStatus, BackendError> {
        self.threshold.host()?;
        let asked = if self.shows(name) {
            name.clone()
        } else {
            name.of_none()
        };
        let status = self.systemd.status(&asked).await;
        let mut status = status.map_err(|error| BackendError {
            message: error.message.replace(asked.as_str(), name.as_str()),
            ..error
        })?;
        if asked != *name {
            status.rename(&asked, name);
        }
        for others in [&mut status.unit.triggers, &mut status.triggered_by] {
            others.retain(|unit| self.threshold.shows_unit(unit));
        }
        Ok(status)
    }

    /// Those of `names` that are loaded, sorted by name; asking loads none.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn loaded(&self, names: &[UnitName]) -> Result<Vec<UnitLine>, BackendError> {
        self.threshold.everything()?;
        self.systemd.loaded(names).await
    }

    /// Every unit that has a file, loaded or not, with the state of that file.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn files(&self) -> Result<BTreeMap<UnitName, UnitFileState>, BackendError> {
        self.threshold.everything()?;
        self.systemd.files().await
    }

    /// What a unit is and how it stands.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn unit(&self, name: &UnitName) -> Result<Unit, BackendError> {
        self.threshold.everything()?;
        self.systemd.unit(name).await
    }

    /// Every change of a unit from now on.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn events(&self) -> Result<UnitEvents, BackendError> {
        self.threshold.everything()?;
        self.systemd.events().await
    }

    fn shows(&self, name: &UnitName) -> bool {
        self.threshold.shows_unit(name.as_str())
    }
}
