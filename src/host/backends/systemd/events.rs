//! Changes of units, as systemd signals them.

use std::collections::BTreeSet;

use zbus::names::MemberName;
use zbus::{Message, ObjectPath};

use super::super::bus::{BusSignals, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::interface::MANAGER;
use crate::helper_client::UnitName;

/// The maximum number of signals returned together; further ones are in the next result.
const MAX_TOGETHER: usize = 4096;

/// The signals to receive. A unit's state is a property of the interface that all units have;
/// systemd signals it together with those of its kind, so this interface is enough.
const RULES: [&str; 6] = [
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.DBus.Properties',\
     member='PropertiesChanged',path_namespace='/org/freedesktop/systemd1/unit',\
     arg0='org.freedesktop.systemd1.Unit'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',\
     member='UnitNew'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',\
     member='UnitRemoved'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',\
     member='UnitFilesChanged'",
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',\
     member='Reloading'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
     member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// A subscription to changes; dropping it ends the subscription.
#[derive(Debug)]
pub struct UnitEvents {
    signals: BusSignals,
    ended: Option<BackendError>,
}

/// The changes. It names units without their state, which the caller must query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangedUnits {
    /// Units that were added, removed or changed.
    pub units: BTreeSet<UnitName>,
    /// Whether unit files were enabled, disabled, added or removed.
    pub files: bool,
    /// Whether systemd has reloaded all files, so that any unit may differ.
    pub reloaded: bool,
}

impl UnitEvents {
    pub(super) async fn open(bus: &SystemBus) -> Result<Self, BackendError> {
        Ok(Self {
            signals: bus.subscribe(&RULES, MANAGER, "Subscribe").await?,
            ended: None,
        })
    }

    /// Waits for the next change and returns it with all further ones already received. Cancel
    /// safe: no change is lost.
    ///
    /// # Errors
    /// When the bus, or systemd on it, is gone; the caller must subscribe again.
    pub async fn next(&mut self) -> Result<ChangedUnits, BackendError> {
        if let Some(cause) = self.ended.take() {
            return Err(cause);
        }
        let mut changed = ChangedUnits::default();
        while changed.is_empty() {
            changed.note(&self.signals.next().await?)?;
        }
        for _ in 0..MAX_TOGETHER {
            let more = tokio::select! {
                biased;
                more = self.signals.next() => more,
                () = std::future::ready(()) => break,
            };
            if let Err(cause) = more.and_then(|message| changed.note(&message)) {
                self.ended = Some(cause);
                break;
            }
        }
        Ok(changed)
    }
}

impl ChangedUnits {
    /// Whether nothing has changed.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn note(&mut self, message: &Message) -> Result<(), BackendError> {
        let (header, body) = (message.header(), message.body());
        match header.member().map(MemberName::as_str) {
            Some("PropertiesChanged") => {
                let name = header.path().map(|path| UnitName::of_path(path));
                self.units.extend(name.flatten());
            }
            Some("UnitNew" | "UnitRemoved") => {
                if let Ok((name, _)) = body.deserialize::<(&str, ObjectPath<'_>)>() {
                    self.units.extend(name.parse());
                }
            }
            Some("UnitFilesChanged") => self.files = true,
            // True when reloading begins, false when it is done.
            Some("Reloading") if body.deserialize() == Ok(false) => {
                (self.files, self.reloaded) = (true, true);
            }
            Some("NameOwnerChanged") => {
                return Err(BackendError {
                    retry: true,
                    ..BackendError::new(
                        ErrorKind::Unavailable,
                        "systemd disconnected from the system bus",
                    )
                });
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use zbus::DynamicType;

    use super::*;

    const ROOT: &str = "/org/freedesktop/systemd1";

    fn signal<B: Serialize + DynamicType>(path: &str, member: &str, body: &B) -> Message {
        let signal = Message::signal(path, "org.example.Signals", member);
        signal.build(body).unwrap()
    }

    fn unit_signal(member: &str, name: &str) -> Message {
        let path = ObjectPath::try_from(ROOT).unwrap();
        signal(ROOT, member, &(name, path))
    }

    #[test]
    fn signals_become_names() {
        let unit = "/org/freedesktop/systemd1/unit/nginx_2eservice";
        let mut changed = ChangedUnits::default();
        for message in [
            signal(ROOT, "Reloading", &true),
            signal(ROOT, "JobRemoved", &7_u32),
            signal("/org", "PropertiesChanged", &"x"),
            unit_signal("UnitNew", "no name"),
            signal(ROOT, "UnitNew", &()),
        ] {
            changed.note(&message).unwrap();
            assert!(changed.is_empty(), "{changed:?}");
        }
        for message in [
            signal(unit, "PropertiesChanged", &"x"),
            unit_signal("UnitNew", "a.service"),
            unit_signal("UnitRemoved", "b.scope"),
        ] {
            changed.note(&message).unwrap();
        }
        let names: Vec<&str> = changed.units.iter().map(UnitName::as_str).collect();
        assert_eq!(names, ["a.service", "b.scope", "nginx.service"]);
        assert!(!changed.files && !changed.reloaded);
        changed
            .note(&signal(ROOT, "UnitFilesChanged", &()))
            .unwrap();
        assert!(changed.files && !changed.reloaded);
        changed.note(&signal(ROOT, "Reloading", &false)).unwrap();
        assert!(changed.reloaded);
        let left = changed.note(&signal("/", "NameOwnerChanged", &"x"));
        assert_eq!(left.unwrap_err().kind, ErrorKind::Unavailable);
    }
}
