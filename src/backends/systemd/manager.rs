//! systemd's manager: asked for its units, and for one of them.

use std::collections::BTreeMap;
use std::path::Path;

use zbus::zvariant::OwnedObjectPath;

use super::super::bus::{Properties, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::events::UnitEvents;
use super::files::UnitFileState;
use super::interface::{self, MANAGER, MANAGER_INTERFACE, UNIT_INTERFACE};
use super::jobs::Jobs;
use super::unit::{Unit, UnitLine, UnitStatus};
use crate::helper_client::UnitName;

/// The facts that only some kinds of units have. They are asked for one by one: all that systemd tells of a
/// service is measured for the answer.
#[rustfmt::skip]
const SPECIFIC: &[(&str, &[&str])] = &[
    ("MainPID", &["service"]),
    ("Result", &["service", "socket", "mount", "automount", "swap", "timer", "path", "scope"]),
];

/// The units of this box; what can be asked is asked by a view of them. A clone is a pointer.
///
/// What is asked here needs no privilege. systemd loads a unit that is asked about by its path and unloads it
/// again, and says so in signals: who follows those asks [`Self::loaded`] first.
#[derive(Debug, Clone)]
pub struct Systemd {
    bus: SystemBus,
}

/// A line of systemd's list: name, description, load, active and sub state, the unit it follows, its path, and
/// its job's number, type and path.
type ListedUnit = (
    String,
    String,
    String,
    String,
    String,
    String,
    OwnedObjectPath,
    u32,
    String,
    OwnedObjectPath,
);

impl Systemd {
    /// The systemd that answers on `bus`.
    pub fn new(bus: SystemBus) -> Self {
        Self { bus }
    }

    /// Whether systemd runs this machine, as `sd_booted(3)` finds out.
    pub fn runs_here() -> bool {
        Path::new("/run/systemd/system").is_dir()
    }

    /// Every loaded unit, sorted by name.
    ///
    /// # Errors
    /// `Unavailable` without a bus or systemd.
    pub(super) async fn list(&self) -> Result<Vec<UnitLine>, BackendError> {
        let listed: Vec<ListedUnit> = self.manager("ListUnits", &()).await?;
        Ok(lines(listed))
    }

    /// Those of `names` that are loaded, sorted by name; asking loads none.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn loaded(&self, names: &[UnitName]) -> Result<Vec<UnitLine>, BackendError> {
        // systemd takes patterns, in which a backslash stands for the character behind it.
        let literal = |name: &UnitName| name.as_str().replace('\\', r"\\");
        let patterns: Vec<String> = names.iter().map(literal).collect();
        let states: [&str; 0] = [];
        let body = (states.as_slice(), patterns);
        let listed: Vec<ListedUnit> = self.manager("ListUnitsByPatterns", &body).await?;
        Ok(lines(listed))
    }

    /// Every unit that has a file, loaded or not, with the state of that file.
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

    /// What a unit is and how it stands.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn unit(&self, name: &UnitName) -> Result<Unit, BackendError> {
        let path = name.path();
        let (common, specific) = tokio::join!(
            self.bus.properties(interface::unit(&path), UNIT_INTERFACE),
            self.specific(&path, name),
        );
        Ok(Unit::of(name.clone(), &common?, &specific?))
    }

    /// A unit in full; one that is not loaded is loaded for it.
    ///
    /// # Errors
    /// `NotFound` when there is no such unit; otherwise as [`Self::list`].
    pub(super) async fn status(&self, name: &UnitName) -> Result<UnitStatus, BackendError> {
        let path: OwnedObjectPath = self.manager("LoadUnit", &name.as_str()).await?;
        let kind = interface::of_kind(name);
        let (common, specific) = tokio::join!(
            self.bus
                .properties(interface::unit(path.as_str()), UNIT_INTERFACE),
            self.bus.properties(interface::unit(path.as_str()), &kind),
        );
        let status = UnitStatus::of(name.clone(), &common?, &specific?);
        if status.unit.line.load == "not-found" {
            let words = format!("there is no unit '{name}' on this box");
            return Err(BackendError::new(ErrorKind::NotFound, words));
        }
        Ok(status)
    }

    /// Every change of a unit from now on.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn events(&self) -> Result<UnitEvents, BackendError> {
        UnitEvents::open(&self.bus).await
    }

    /// The ends of jobs from now on.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub(super) async fn jobs(&self) -> Result<Jobs, BackendError> {
        Jobs::open(&self.bus).await
    }

    /// Those of [`SPECIFIC`] that this unit has.
    async fn specific(&self, path: &str, name: &UnitName) -> Result<Properties, BackendError> {
        let kind = interface::of_kind(name);
        let mut found = Properties::new();
        for (property, kinds) in SPECIFIC {
            if kinds.contains(&name.kind()) {
                let of = (kind.as_str(), *property);
                let value = self.bus.property(interface::unit(path), of).await?;
                found.insert((*property).to_owned(), value);
            }
        }
        Ok(found)
    }

    async fn manager<B, R>(&self, method: &str, body: &B) -> Result<R, BackendError>
    where
        B: serde::Serialize + zbus::zvariant::DynamicType,
        R: for<'de> zbus::zvariant::DynamicDeserialize<'de>,
    {
        self.bus
            .call(MANAGER, (MANAGER_INTERFACE, method), body)
            .await
    }
}

/// Names that no tool of ours would take are left out.
fn lines(listed: Vec<ListedUnit>) -> Vec<UnitLine> {
    let line = |(name, description, load, active, sub, ..): ListedUnit| {
        Some(UnitLine {
            name: name.parse().ok()?,
            description,
            load,
            active,
            sub,
        })
    };
    let mut lines: Vec<UnitLine> = listed.into_iter().filter_map(line).collect();
    lines.sort_by(|a, b| a.name.cmp(&b.name));
    lines
}
