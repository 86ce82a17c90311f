//! How the jobs of systemd end, as it signals it.

use super::super::bus::{Signals, SystemBus, Value};
use super::super::error::{BackendError, ErrorKind};
use super::interface::{MANAGER, MANAGER_INTERFACE};

/// What the bus is to pass on.
const RULES: [&str; 2] = [
    "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',\
     member='JobRemoved'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',\
     member='NameOwnerChanged',arg0='org.freedesktop.systemd1'",
];

/// The ends of jobs from now on: opened before one is asked for, it misses none.
#[derive(Debug)]
pub struct Jobs {
    signals: Signals,
}

impl Jobs {
    pub(super) async fn open(bus: &SystemBus) -> Result<Self, BackendError> {
        let mut signals = bus.listen(&RULES).await?;
        // systemd signals nothing as long as nobody has asked for it.
        signals
            .call(MANAGER, (MANAGER_INTERFACE, "Subscribe"), &[])
            .await?;
        Ok(Self { signals })
    }

    /// Waits until a job is gone, and says with what result: `done`, `failed`, `timeout`, `dependency`, `skipped`,
    /// `canceled` and the like.
    ///
    /// # Errors
    /// When bus or systemd went away meanwhile.
    pub async fn result(&mut self, job: &str) -> Result<String, BackendError> {
        loop {
            let message = self.signals.next().await?;
            match message.member.as_deref() {
                Some("JobRemoved") => {}
                Some("NameOwnerChanged") => {
                    let words = "systemd has left the system bus before the job ended";
                    return Err(BackendError::new(ErrorKind::Unavailable, words));
                }
                _ => continue,
            }
            // Number, path, unit and result.
            let mut body = message.body.into_iter().skip(1);
            let path = body.next().and_then(Value::into_text);
            let result = body.nth(1).and_then(Value::into_text);
            if let Some(result) = result.filter(|_| path.as_deref() == Some(job)) {
                return Ok(result);
            }
        }
    }
}
