//! The processes of a call after they were killed: waits until they are gone, and removes their cgroups.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use gatewren_base::sys::Cgroup;

use super::call_processes::CallProcesses;
use crate::context::orphans::TrackedChild;

/// The longest wait in the background. After that the sweep of a later helper kills the rest.
const PATIENCE: Duration = Duration::from_mins(10);

/// Processes that have been killed and are not gone yet.
#[derive(Debug)]
pub struct KilledProcesses {
    /// The first process of the call.
    pub child: TrackedChild,
    /// The cgroup of the call.
    pub cgroup: Option<Cgroup>,
    /// The cgroup of a program that runs as a user.
    pub client_cgroup: Option<Cgroup>,
    /// All processes of the call.
    pub processes: Arc<CallProcesses>,
    /// How many rounds in a row must find no process.
    pub empty_rounds: u32,
}

impl KilledProcesses {
    /// Waits until the child is reaped, no process of the call is alive, and the cgroup is empty and removed. Kills
    /// the cgroup again after `patience`.
    pub async fn wait_gone(&self, patience: Instant) {
        // An error means that the child was already reaped.
        let _ = self.child.wait().await;
        self.processes.kill_all(self.empty_rounds).await;
        for cgroup in [&self.cgroup, &self.client_cgroup].into_iter().flatten() {
            wait_until_removed(cgroup, patience).await;
        }
    }

    /// Waits longer, in the background, and logs that.
    pub fn continue_later(self) {
        tracing::warn!(
            pid = self.child.pid(),
            cgroup = ?self.cgroup.as_ref().map(Cgroup::path),
            "processes of a call are still running; is the container frozen?"
        );
        tokio::spawn(self.later());
    }

    async fn later(self) {
        let _ = timeout(PATIENCE, self.wait_gone(Instant::now())).await;
    }
}

/// Waits until a cgroup is empty, and removes it. Kills what is in it after `patience`.
async fn wait_until_removed(cgroup: &Cgroup, patience: Instant) {
    let mut killed = false;
    while cgroup.populated() {
        if !killed && Instant::now() > patience {
            kill_group(Some(cgroup));
            killed = true;
        }
        sleep(Duration::from_millis(1)).await;
    }
    while let Err(cause) = cgroup.remove() {
        if cause.kind() != io::ErrorKind::ResourceBusy {
            tracing::warn!(%cause, cgroup = ?cgroup.path(), "a cgroup could not be removed");
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// Kills a cgroup, if there is one.
pub fn kill_group(cgroup: Option<&Cgroup>) {
    if let Some(Err(cause)) = cgroup.map(Cgroup::kill) {
        tracing::warn!(%cause, "a cgroup could not be killed");
    }
}

/// Removes a cgroup in which nothing was started.
pub fn abandon(cgroup: Option<&Cgroup>) {
    if let Some(Err(cause)) = cgroup.map(Cgroup::remove) {
        tracing::debug!(%cause, "an unused cgroup could not be removed");
    }
}
