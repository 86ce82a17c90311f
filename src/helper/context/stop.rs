//! The three causes that end an operation early: its timeout, its caller, and the helper's shutdown.

use std::future::pending;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use gatewren_wire::operations::KillReason;

/// The conditions that end one operation.
#[derive(Debug, Clone)]
pub struct StopConditions {
    deadline: Option<Instant>,
    shutdown: watch::Receiver<bool>,
}

impl StopConditions {
    /// Ends after `timeout_ms`, or when `shutdown` becomes true.
    pub fn new(timeout_ms: u64, shutdown: watch::Receiver<bool>) -> Self {
        // A timeout too long for the clock counts as none.
        let deadline = Instant::now().checked_add(Duration::from_millis(timeout_ms));
        Self {
            deadline: deadline.filter(|_| timeout_ms < u64::MAX),
            shutdown,
        }
    }

    /// Adds `time` to the timeout.
    pub fn extend(&mut self, time: Duration) {
        self.deadline = self.deadline.and_then(|at| at.checked_add(time));
    }

    /// Waits for the first reason to end; `cancelled` resolves when the caller cancels.
    pub async fn wait_for_reason(&mut self, cancelled: impl Future<Output = ()>) -> KillReason {
        let deadline = self.deadline;
        let time_up = async move {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = time_up => KillReason::Timeout,
            () = cancelled => KillReason::Cancelled,
            // An error means that the helper is shutting down.
            _ = self.shutdown.wait_for(|stop| *stop) => KillReason::Shutdown,
        }
    }
}

/// Waits until a caller has disconnected. A caller sends nothing after its request, so any further bytes count as a
/// disconnect.
pub async fn wait_for_disconnect(caller: &UnixStream) {
    loop {
        let readable = caller.readable().await;
        match caller.try_read(&mut [0; 1]) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock && readable.is_ok() => {}
            _ => return,
        }
    }
}
