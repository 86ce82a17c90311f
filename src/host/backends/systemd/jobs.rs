//! The results of systemd's jobs, as it signals them.

use super::super::bus::{BusSignals, BusValue, SystemBus};
use super::super::error::{BackendError, ErrorKind};
use super::interface::{MANAGER, MANAGER_INTERFACE};

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
        let mut signals = bus.listen(&RULES).await?;
        // systemd sends signals only to clients that have called this.
        signals
            .call(MANAGER, (MANAGER_INTERFACE, "Subscribe"), &[])
            .await?;
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
            match message.member.as_deref() {
                Some("JobRemoved") => {}
                Some("NameOwnerChanged") => {
                    let words = "systemd disconnected from the system bus before the job ended";
                    return Err(BackendError::new(ErrorKind::Unavailable, words));
                }
                _ => continue,
            }
            // Number, path, unit and result.
            let mut body = message.body.into_iter().skip(1);
            let path = body.next().and_then(BusValue::into_text);
            let result = body.nth(1).and_then(BusValue::into_text);
            if let Some(result) = result.filter(|_| path.as_deref() == Some(job)) {
                return Ok(result);
            }
        }
    }
}
