//! Signals as events: stop and reload.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The event of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalEvent {
    /// SIGTERM or SIGINT.
    Stop,
    /// SIGHUP.
    Reload,
}

/// The signals that are handled.
pub struct ProcessSignals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl ProcessSignals {
    /// Starts listening.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> SignalEvent {
        tokio::select! {
            _ = self.term.recv() => SignalEvent::Stop,
            _ = self.int.recv() => SignalEvent::Stop,
            _ = self.hup.recv() => SignalEvent::Reload,
        }
    }
}
