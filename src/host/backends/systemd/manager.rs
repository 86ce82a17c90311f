//! Queries systemd's manager for its units.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use zbus::wire::{DynamicType, OwnedObjectPath, Type};

use super::super::bus::{Properties, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::events::UnitEvents;
use super::files::UnitFileState;
use super::interface::{self, MANAGER, UNIT_INTERFACE};
use super::jobs::SystemdJobs;
use super::unit::{Unit, UnitLine, UnitStatus};
use crate::helper_client::UnitName;

/// Properties that only some kinds of units have. They are queried one by one: for all properties
/// of a service, systemd would have to measure its resources.
#[rustfmt::skip]
const SPECIFIC: &[(&str, &[&str])] = &[
    ("MainPID", &["service"]),
    ("Result", &["service", "socket", "mount", "automount", "swap", "timer", "path", "scope"]),
];

/// A unit in systemd's lists: name, description, load, active and sub state; then the unit it
/// follows, its path, and the number, type and path of its job.
#[rustfmt::skip]
type UnitRow =
    (String, String, String, String, String, String, OwnedObjectPath, u32, String, OwnedObjectPath);

/// The units of this host; queries need a view. A clone is cheap.
///
/// These queries need no privilege. A query by path makes systemd load the unit and unload it
/// again, and systemd signals both. A subscriber to those signals must therefore call
/// [`Self::list_loaded`] first.
#[derive(Debug, Clone)]
pub struct Systemd {
    bus: SystemBus,
}

impl Systemd {
    /// Returns the systemd that answers on `bus`.
    pub fn new(bus: SystemBus) -> Self {
        Self { bus }
    }

    /// Whether systemd runs this host, as checked by `sd_booted(3)`.
    pub fn runs_here() -> bool {
        Path::new("/run/systemd/system").is_dir()
    }

    /// Returns every loaded unit, sorted by name.
    ///
    /// # Errors
    /// `Unavailable` without a bus or systemd.
    pub(super) async fn list(&self) -> Result<Vec<UnitLine>, BackendError> {
        Ok(lines(self.manager("ListUnits", &()).await?))
    }

    /// Returns the loaded units among `names`, sorted by name; loads none.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn list_loaded(
        &self,
        names: &[UnitName],
    ) -> Result<Vec<UnitLine>, BackendError> {
        // systemd accepts patterns, in which a backslash escapes the next character.
        let literal = |name: &UnitName| name.as_str().replace('\\', r"\\");
        let patterns: Vec<String> = names.iter().map(literal).collect();
        let any_state: &[&str] = &[];
        let arguments = (any_state, patterns);
        Ok(lines(
            self.manager("ListUnitsByPatterns", &arguments).await?,
        ))
    }

    /// Returns every unit that has a file, loaded or not, with the state of that file.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn files(&self) -> Result<BTreeMap<UnitName, UnitFileState>, BackendError> {
        let listed: Vec<(String, String)> = self.manager("ListUnitFiles", &()).await?;
        let file = |(path, state): (String, String)| {
            let name = path.rsplit('/').next()?.parse().ok()?;
            Some((name, UnitFileState::from(state)))
        };
        Ok(listed.into_iter().filter_map(file).collect())
    }

    /// Returns a unit's facts and state.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn unit(&self, name: &UnitName) -> Result<Unit, BackendError> {
        let path = name.path();
        let (common, specific) = tokio::join!(
            self.bus.properties(interface::unit(&path, UNIT_INTERFACE)),
            self.specific(&path, name),
        );
        Ok(Unit::of(name.clone(), &common?, &specific?))
    }

    /// Returns all details of a unit, which is loaded if necessary.
    ///
    /// # Errors
    /// `NotFound` when the unit does not exist; otherwise as [`Self::list`].
    pub(super) async fn status(&self, name: &UnitName) -> Result<UnitStatus, BackendError> {
        let path: OwnedObjectPath = self.manager("LoadUnit", &name.as_str()).await?;
        let kind = interface::of_kind(name);
        let (common, specific) = tokio::join!(
            self.bus.properties(interface::unit(&path, UNIT_INTERFACE)),
            self.bus.properties(interface::unit(&path, &kind)),
        );
        let status = UnitStatus::of(name.clone(), &common?, &specific?);
        if status.unit.line.load == "not-found" {
            let words = format!("there is no unit '{name}' on this server");
            return Err(BackendError::new(ErrorKind::NotFound, words));
        }
        Ok(status)
    }

    /// Subscribes to changes of units.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn events(&self) -> Result<UnitEvents, BackendError> {
        UnitEvents::open(&self.bus).await
    }

    /// Subscribes to the ends of jobs.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn jobs(&self) -> Result<SystemdJobs, BackendError> {
        SystemdJobs::open(&self.bus).await
    }

    /// Returns the properties in [`SPECIFIC`] that this unit has.
    async fn specific(&self, path: &str, name: &UnitName) -> Result<Properties, BackendError> {
        let kind = interface::of_kind(name);
        let mut found = Properties::new();
        for (property, kinds) in SPECIFIC {
            if kinds.contains(&name.kind()) {
                let object = interface::unit(path, &kind);
                let value = self.bus.property(object, property).await?;
                found.insert((*property).to_owned(), value);
            }
        }
        Ok(found)
    }

    async fn manager<A, R>(&self, method: &str, arguments: &A) -> Result<R, BackendError>
    where
        A: Serialize + DynamicType,
        R: DeserializeOwned + Type,
    {
        self.bus.call(MANAGER, method, arguments).await
    }
}

/// Names that gatewren's tools reject are left out.
fn lines(rows: Vec<UnitRow>) -> Vec<UnitLine> {
    let line = |(name, description, load, active, sub, ..): UnitRow| {
        Some(UnitLine {
            name: name.parse().ok()?,
            description,
            load,
            active,
            sub,
        })
    };
    let mut lines: Vec<UnitLine> = rows.into_iter().filter_map(line).collect();
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    lines
}
