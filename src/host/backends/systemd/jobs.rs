//! The results of systemd's jobs, as it signals them.

use zbus::ObjectPath;
use zbus::names::MemberName;

use super::super::bus::{BusSignals, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::interface::MANAGER;

/// The signals to receive.
const RULES: [&str; 2] = [
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',\
     member='JobRemoved'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
     member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// A subscription to the ends of jobs. Opened before a job is requested, it misses none.
#[derive(Debug)]
pub struct SystemdJobs {
    signals: BusSignals,
}

impl SystemdJobs {
    pub(super) async fn open(bus: &SystemBus) -> Result<Self, BackendError> {
        let signals = bus.subscribe(&RULES, MANAGER, "Subscribe").await?;
        Ok(Self { signals })
    }

    /// Waits until a job ends and returns its result: `done`, `failed`, `timeout`, `dependency`,
    /// `skipped`, `canceled` and the like.
    ///
    /// # Errors
    /// When the bus or systemd is gone before that.
    pub async fn result(&mut self, job: &str) -> Result<String, BackendError> {
        loop {
            let message = self.signals.next().await?;
            let header = message.header();
            match header.member().map(MemberName::as_str) {
                Some("JobRemoved") => {}
                Some("NameOwnerChanged") => {
                    let words = "systemd disconnected from the system bus before the job ended";
                    return Err(BackendError::new(ErrorKind::Unavailable, words));
                }
                _ => continue,
            }
            // Number, path, unit and result.
            let body = message.body();
            if let Ok((_, path, _, result)) =
                body.deserialize::<(u32, ObjectPath<'_>, &str, &str)>()
                && path.as_str() == job
            {
                return Ok(result.to_owned());
            }
        }
    }
}
