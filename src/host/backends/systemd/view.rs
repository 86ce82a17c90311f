//! The units that a caller may access, without those of inaccessible containers.

use std::collections::BTreeMap;

use super::super::access_filter::AccessFilter;
use super::super::error::BackendError;
use super::events::UnitEvents;
use super::files::UnitFileState;
use super::manager::Systemd;
use super::unit::{Unit, UnitLine, UnitStatus};
use crate::helper_client::UnitName;
use gatewren_base::config::Reach;

/// The units that a caller may access; a clone is cheap.
#[derive(Debug, Clone)]
pub struct SystemdView {
    systemd: Systemd,
    access: AccessFilter,
}

impl Systemd {
    /// Returns the units that a caller may access.
    pub fn view_for(&self, reach: &Reach) -> SystemdView {
        SystemdView {
            systemd: self.clone(),
            access: AccessFilter::of(reach),
        }
    }
}

impl SystemdView {
    /// Returns every loaded unit, sorted by name.
    ///
    /// # Errors
    /// `Unavailable` without a bus or systemd; `Refused` without access to the host.
    pub async fn list(&self) -> Result<Vec<UnitLine>, BackendError> {
        self.access.host()?;
        let mut listed = self.systemd.list().await?;
        listed.retain(|line| self.shows(&line.name));
        Ok(listed)
    }

    /// Returns all details of a unit, which is loaded if necessary. A unit of an inaccessible
    /// container looks like one of a container that does not exist.
    ///
    /// # Errors
    /// `NotFound` when the unit does not exist; otherwise as [`Self::list`].
    pub async fn status(&self, name: &UnitName) -> Result<UnitStatus, BackendError> {
        self.access.host()?;
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
            others.retain(|unit| self.access.shows_unit(unit));
        }
        Ok(status)
    }

    /// Returns the loaded units among `names`, sorted by name; loads none.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn list_loaded(&self, names: &[UnitName]) -> Result<Vec<UnitLine>, BackendError> {
        self.access.everything()?;
        self.systemd.list_loaded(names).await
    }

    /// Returns every unit that has a file, loaded or not, with the state of that file.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn files(&self) -> Result<BTreeMap<UnitName, UnitFileState>, BackendError> {
        self.access.everything()?;
        self.systemd.files().await
    }

    /// Returns a unit's facts and state.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn unit(&self, name: &UnitName) -> Result<Unit, BackendError> {
        self.access.everything()?;
        self.systemd.unit(name).await
    }

    /// Subscribes to changes of units.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn events(&self) -> Result<UnitEvents, BackendError> {
        self.access.everything()?;
        self.systemd.events().await
    }

    fn shows(&self, name: &UnitName) -> bool {
        self.access.shows_unit(name.as_str())
    }
}
