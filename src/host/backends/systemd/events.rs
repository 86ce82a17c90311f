//! Changes of units, as systemd signals them.

use std::collections::BTreeSet;

use super::super::bus::{BusMessage, BusSignals, BusValue, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::interface::{MANAGER, MANAGER_INTERFACE};
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
        let mut signals = bus.listen(&RULES).await?;
        // systemd sends signals only to clients that have called this.
        signals
            .call(MANAGER, (MANAGER_INTERFACE, "Subscribe"), &[])
            .await?;
        Ok(Self {
            signals,
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
        let mut news = ChangedUnits::default();
        while news.is_empty() {
            news.note(self.signals.next().await?)?;
        }
        for _ in 0..MAX_TOGETHER {
            let more = tokio::select! {
                biased;
                more = self.signals.next() => more,
                () = std::future::ready(()) => break,
            };
            if let Err(cause) = more.and_then(|message| news.note(message)) {
                self.ended = Some(cause);
                break;
            }
        }
        Ok(news)
    }
}

impl ChangedUnits {
    /// Whether nothing has changed.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn note(&mut self, message: BusMessage) -> Result<(), BackendError> {
        let first = message.body.into_iter().next();
        match message.member.as_deref() {
            Some("PropertiesChanged") => {
                let name = message.path.map(|path| UnitName::of_path(&path));
                self.units.extend(name.flatten());
            }
            Some("UnitNew" | "UnitRemoved") => {
                let named = first.and_then(BusValue::into_text);
                self.units.extend(named.and_then(|name| name.parse().ok()));
            }
            Some("UnitFilesChanged") => self.files = true,
            // True when reloading begins, false when it is done.
            Some("Reloading") if first == Some(BusValue::Bool(false)) => {
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
    use super::*;

    fn signal(path: &str, member: &str, first: Option<BusValue>) -> BusMessage {
        BusMessage::signal(path, member, first.into_iter().collect())
    }

    #[test]
    fn signals_become_names() {
        let root = "/org/freedesktop/systemd1";
        let unit = "/org/freedesktop/systemd1/unit/nginx_2eservice";
        let text = |text: &str| Some(BusValue::Text(text.to_owned()));
        let mut news = ChangedUnits::default();
        for message in [
            signal(root, "Reloading", Some(BusValue::Bool(true))),
            signal(root, "JobRemoved", Some(BusValue::Unsigned(7))),
            signal("/org", "PropertiesChanged", text("x")),
            signal(root, "UnitNew", text("no name")),
            signal(root, "UnitNew", None),
        ] {
            news.note(message).unwrap();
            assert!(news.is_empty(), "{news:?}");
        }
        for message in [
            signal(unit, "PropertiesChanged", text("x")),
            signal(root, "UnitNew", text("a.service")),
            signal(root, "UnitRemoved", text("b.scope")),
        ] {
            news.note(message).unwrap();
        }
        let names: Vec<&str> = news.units.iter().map(UnitName::as_str).collect();
        assert_eq!(names, ["a.service", "b.scope", "nginx.service"]);
        assert!(!news.files && !news.reloaded);
        news.note(signal(root, "UnitFilesChanged", None)).unwrap();
        assert!(news.files && !news.reloaded);
        let done = signal(root, "Reloading", Some(BusValue::Bool(false)));
        news.note(done).unwrap();
        assert!(news.reloaded);
        let left = signal("/", "NameOwnerChanged", text("x"));
        assert_eq!(news.note(left).unwrap_err().kind, ErrorKind::Unavailable);
    }
}
