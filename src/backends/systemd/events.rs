//! Changes of units as systemd signals them.

use std::collections::BTreeSet;

use zbus::Message;
use zbus::names::MemberName;

use super::super::bus::{Signals, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::interface::{MANAGER, MANAGER_INTERFACE};
use crate::helper_client::UnitName;

/// How many signals are taken together at most; further ones are the next news.
const MAX_TOGETHER: usize = 4096;

/// What the bus is to pass on. A unit's state is a property of it; systemd signals it beside those of its
/// kind, so that the interface all units have is enough.
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

/// The changes from now on; dropping it ends the subscription.
#[derive(Debug)]
pub struct UnitEvents {
    signals: Signals,
    ended: Option<BackendError>,
}

/// What has changed. It names units and says nothing of their state: ask for that.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitNews {
    /// Units that came, went or changed.
    pub units: BTreeSet<UnitName>,
    /// Whether unit files were enabled, disabled, added or removed.
    pub files: bool,
    /// Whether systemd has read all files again, so that any unit may be another.
    pub reloaded: bool,
}

impl UnitEvents {
    pub(super) async fn open(bus: &SystemBus) -> Result<Self, BackendError> {
        let signals = bus.listen(&RULES).await?;
        // systemd signals nothing as long as nobody has asked for it.
        signals
            .call(MANAGER, (MANAGER_INTERFACE, "Subscribe"))
            .await?;
        Ok(Self {
            signals,
            ended: None,
        })
    }

    /// Waits for the next change and takes those that are there already with it. Safe to drop while it waits:
    /// no change is lost.
    ///
    /// # Errors
    /// When the bus or systemd on it went away; ask for new events then.
    pub async fn next(&mut self) -> Result<UnitNews, BackendError> {
        if let Some(cause) = self.ended.take() {
            return Err(cause);
        }
        let mut news = UnitNews::default();
        while news.is_empty() {
            news.note(&self.signals.next().await?)?;
        }
        for _ in 0..MAX_TOGETHER {
            let more = tokio::select! {
                biased;
                more = self.signals.next() => more,
                () = std::future::ready(()) => break,
            };
            if let Err(cause) = more.and_then(|message| news.note(&message)) {
                self.ended = Some(cause);
                break;
            }
        }
        Ok(news)
    }
}

impl UnitNews {
    /// Whether nothing has changed.
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn note(&mut self, message: &Message) -> Result<(), BackendError> {
        let header = message.header();
        let member = header.member().map(MemberName::as_str);
        match member {
            Some("PropertiesChanged") => {
                let name = header.path().map(|path| UnitName::of_path(path.as_str()));
                self.units.extend(name.flatten());
            }
            Some("UnitNew" | "UnitRemoved") => {
                let body = message.body();
                let named = body.deserialize::<(&str, zbus::zvariant::ObjectPath<'_>)>();
                self.units
                    .extend(named.ok().and_then(|(name, _)| name.parse().ok()));
            }
            Some("UnitFilesChanged") => self.files = true,
            // True when it begins, false when it is done.
            Some("Reloading") if message.body().deserialize::<bool>().is_ok_and(|on| !on) => {
                (self.files, self.reloaded) = (true, true);
            }
            Some("NameOwnerChanged") => {
                return Err(BackendError {
                    retry: true,
                    ..BackendError::new(ErrorKind::Unavailable, "systemd has left the system bus")
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

    fn signal<B>(path: &str, interface: &str, member: &str, body: &B) -> Message
    where
        B: serde::Serialize + zbus::zvariant::DynamicType,
    {
        let message = Message::signal(path, interface, member).unwrap();
        message.build(body).unwrap()
    }

    #[test]
    fn signals_become_names() {
        let manager = "org.freedesktop.systemd1.Manager";
        let root = "/org/freedesktop/systemd1";
        let unit = "/org/freedesktop/systemd1/unit/nginx_2eservice";
        let path = zbus::zvariant::ObjectPath::try_from(unit).unwrap();
        let mut news = UnitNews::default();
        for message in [
            signal(root, manager, "Reloading", &true),
            signal(root, manager, "JobRemoved", &(7_u32,)),
            signal(
                "/org",
                "org.freedesktop.DBus.Properties",
                "PropertiesChanged",
                &("x",),
            ),
            signal(root, manager, "UnitNew", &("no name", path.clone())),
        ] {
            news.note(&message).unwrap();
            assert!(news.is_empty(), "{message:?}");
        }
        let properties = "org.freedesktop.DBus.Properties";
        for message in [
            signal(unit, properties, "PropertiesChanged", &("x",)),
            signal(root, manager, "UnitNew", &("a.service", path.clone())),
            signal(root, manager, "UnitRemoved", &("b.scope", path)),
        ] {
            news.note(&message).unwrap();
        }
        let names: Vec<&str> = news.units.iter().map(UnitName::as_str).collect();
        assert_eq!(names, ["a.service", "b.scope", "nginx.service"]);
        assert!(!news.files && !news.reloaded);
        news.note(&signal(root, manager, "UnitFilesChanged", &()))
            .unwrap();
        assert!(news.files && !news.reloaded);
        news.note(&signal(root, manager, "Reloading", &false))
            .unwrap();
        assert!(news.reloaded);
        let left = signal(
            "/",
            "org.freedesktop.DBus",
            "NameOwnerChanged",
            &("x", ":1.1", ""),
        );
        assert_eq!(news.note(&left).unwrap_err().kind, ErrorKind::Unavailable);
    }
}
