//! systemd's manager: asked for its units, and for one of them.

use std::collections::BTreeMap;

use zbus::zvariant::OwnedObjectPath;

use super::super::bus::{Object, Properties, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::events::UnitEvents;
use super::files::UnitFileState;
use super::name::UnitName;
use super::unit::{Unit, UnitLine, UnitStatus};

/// systemd's well-known name on the bus.
pub(super) const SERVICE: &str = "org.freedesktop.systemd1";

/// The manager, as an object.
pub(super) const MANAGER: Object<'static> = Object {
    service: SERVICE,
    path: "/org/freedesktop/systemd1",
};

/// The manager's interface.
pub(super) const INTERFACE: &str = "org.freedesktop.systemd1.Manager";

/// What all units have.
const UNIT: &str = "org.freedesktop.systemd1.Unit";

/// The units of this box; a clone is a pointer.
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

    /// Every loaded unit, sorted by name.
    ///
    /// # Errors
    /// `Unavailable` without a bus or systemd.
    pub async fn list(&self) -> Result<Vec<UnitLine>, BackendError> {
        let listed: Vec<ListedUnit> = self.manager("ListUnits", &()).await?;
        Ok(lines(listed))
    }

    /// Those of `names` that are loaded, sorted by name; asking loads none.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn loaded(&self, names: &[UnitName]) -> Result<Vec<UnitLine>, BackendError> {
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
    pub async fn files(&self) -> Result<BTreeMap<UnitName, UnitFileState>, BackendError> {
        let listed: Vec<(String, String)> = self.manager("ListUnitFiles", &()).await?;
        let file = |(path, state): (String, String)| {
            let name = path.rsplit('/').next()?.parse().ok()?;
            Some((name, UnitFileState::of(&state)?))
        };
        Ok(listed.into_iter().filter_map(file).collect())
    }

    /// What a unit is and how it stands.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn unit(&self, name: &UnitName) -> Result<Unit, BackendError> {
        let path = name.path();
        let interface = interface(name);
        let (common, main_pid, result) = tokio::join!(
            self.bus.properties(object(&path), UNIT),
            self.specific(&path, &interface, (name, "MainPID")),
            self.specific(&path, &interface, (name, "Result")),
        );
        let mut specific = main_pid?;
        specific.extend(result?);
        Ok(Unit::of(name.clone(), &common?, &specific))
    }

    /// A unit in full; one that is not loaded is loaded for it.
    ///
    /// # Errors
    /// `NotFound` when there is no such unit; otherwise as [`Self::list`].
    pub async fn status(&self, name: &UnitName) -> Result<UnitStatus, BackendError> {
        let path: OwnedObjectPath = self.manager("LoadUnit", &name.as_str()).await?;
        let interface = interface(name);
        let (common, specific) = tokio::join!(
            self.bus.properties(object(path.as_str()), UNIT),
            self.bus.properties(object(path.as_str()), &interface),
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
    pub async fn events(&self) -> Result<UnitEvents, BackendError> {
        UnitEvents::open(&self.bus).await
    }

    /// One property that only some kinds of units have.
    async fn specific(
        &self,
        path: &str,
        interface: &str,
        (name, property): (&UnitName, &str),
    ) -> Result<Properties, BackendError> {
        let kinds: &[&str] = match property {
            "MainPID" => &["service"],
            _ => &[
                "service",
                "socket",
                "mount",
                "automount",
                "swap",
                "timer",
                "path",
                "scope",
            ],
        };
        if !kinds.contains(&name.kind()) {
            return Ok(Properties::new());
        }
        let of = (interface, property);
        let value = self.bus.property(object(path), of).await?;
        Ok(Properties::from([(property.to_owned(), value)]))
    }

    async fn manager<B, R>(&self, method: &str, body: &B) -> Result<R, BackendError>
    where
        B: serde::Serialize + zbus::zvariant::DynamicType,
        R: for<'de> zbus::zvariant::DynamicDeserialize<'de>,
    {
        self.bus.call(MANAGER, (INTERFACE, method), body).await
    }
}

fn object(path: &str) -> Object<'_> {
    Object {
        service: SERVICE,
        path,
    }
}

/// The interface of a unit's kind, such as `org.freedesktop.systemd1.Service`.
fn interface(name: &UnitName) -> String {
    let kind = name.kind();
    let (first, rest) = kind.split_at_checked(1).unwrap_or((kind, ""));
    format!("{SERVICE}.{}{rest}", first.to_ascii_uppercase())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_follows_the_kind() {
        let of = |name: &str| interface(&name.parse().unwrap());
        assert_eq!(of("a.service"), "org.freedesktop.systemd1.Service");
        assert_eq!(of("a.b.automount"), "org.freedesktop.systemd1.Automount");
    }
}
