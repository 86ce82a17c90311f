//! Notifications to the service manager: ready, reloading, stopping, status, watchdog.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::sys::send_datagram;

/// The connection to the service manager, `sd_notify(3)`; without one it does nothing.
///
/// A notification that cannot be sent is logged and otherwise has no effect.
#[derive(Debug)]
pub struct SdNotify {
    socket: Option<OsString>,
    watchdog: Option<Duration>,
}

impl SdNotify {
    /// Reads the service manager's settings from the environment.
    pub fn from_env() -> Self {
        Self {
            socket: std::env::var_os("NOTIFY_SOCKET").filter(|socket| !socket.is_empty()),
            watchdog: sd_notify::watchdog_enabled(),
        }
    }

    /// Returns a notifier to this socket, without a watchdog.
    #[cfg(test)]
    pub fn to(socket: &std::ffi::OsStr) -> Self {
        Self {
            socket: Some(socket.to_owned()),
            watchdog: None,
        }
    }

    /// Reports that the server is ready.
    pub fn ready(&self) {
        self.send(&[NotifyState::Ready]);
    }

    /// Reports that it is reloading its settings; [`SdNotify::ready`] reports the end.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            // Without the time, systemd 253 and later would stop the service.
            Err(cause) => {
                tracing::warn!(%cause, "reading the clock failed, so the reload is not announced to systemd");
            }
        }
    }

    /// Reports that it accepts no new connections and stops what is running.
    pub fn stopping(&self) {
        self.send(&[NotifyState::Stopping]);
    }

    /// Sends a one-line status for `systemctl status`.
    pub fn status(&self, words: &str) {
        // A line break would begin another notification.
        let line = words.replace(['\n', '\r'], " ");
        self.send(&[NotifyState::Status(&line)]);
    }

    /// Reports that it is alive.
    pub fn alive(&self) {
        self.send(&[NotifyState::Watchdog]);
    }

    /// Returns the watchdog timeout, after which the service manager kills us; send a sign of life at least twice
    /// as often. `None` if it has no watchdog for this process.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.filter(|_| self.socket.is_some())
    }

    fn send(&self, states: &[NotifyState<'_>]) {
        let Some(socket) = &self.socket else {
            return;
        };
        let mut text = String::new();
        for state in states {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{state}");
        }
        if let Err(cause) = send_datagram(socket, text.as_bytes()) {
            tracing::warn!(%cause, "notifying the service manager failed: {}", text.trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    use std::ffi::OsStr;

    use super::*;
    use crate::sys::Scratch;

    fn next(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_notice_is_what_systemd_expects() {
        let scratch = Scratch::new();
        let path = scratch.join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_mins(2)))
            .unwrap();
        let notify = SdNotify::to(path.as_os_str());
        notify.ready();
        assert_eq!(next(&socket), "READY=1\n");
        notify.status("two\nlines");
        assert_eq!(next(&socket), "STATUS=two lines\n");
        notify.reloading();
        let reload = next(&socket);
        let usec = reload.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(usec.trim_end().parse::<u64>().unwrap() > 0, "{reload}");
        notify.alive();
        assert_eq!(next(&socket), "WATCHDOG=1\n");
        notify.stopping();
        assert_eq!(next(&socket), "STOPPING=1\n");
    }

    #[test]
    fn without_a_service_manager_nothing_happens() {
        let notify = SdNotify {
            socket: None,
            watchdog: Some(Duration::from_secs(30)),
        };
        notify.ready();
        assert_eq!(notify.watchdog(), None);
    }

    #[test]
    fn one_that_is_gone_does_no_harm() {
        SdNotify::to(OsStr::new("/nonexistent/notify")).ready();
    }
}
