//! Freezes a container for a short time, and unfreezes it afterwards even if the helper is killed.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use gatewren_base::sys::{Cgroup, set_frozen};

use super::call_processes::CallProcesses;
use crate::context::containers::RunningContainer;
use crate::context::helper_context::HelperContext;

/// How long a container may be frozen while the processes of a call are found and killed in it.
const FROZEN_TIME: Duration = Duration::from_secs(1);

/// How often to check whether it is frozen.
const LOOK: Duration = Duration::from_millis(1);

/// Keeps a container frozen until it is dropped.
///
/// It does not go through LXC, so unfreezing depends on no other process. A mark in the container's own cgroup
/// records that a helper froze it. If this helper is killed, the next one, or the command that systemd runs after it,
/// unfreezes the container.
#[derive(Debug)]
pub struct FreezeGuard {
    payload: PathBuf,
    mark: Cgroup,
}

impl FreezeGuard {
    /// Asks the kernel to freeze the container; [`wait_until_frozen`] waits until it is frozen. `None` if it has no
    /// version 2 cgroup, or is already frozen.
    pub fn begin(helper: &HelperContext, running: &RunningContainer) -> io::Result<Option<Self>> {
        let Some(payload) = running.payload.clone() else {
            return Ok(None);
        };
        if running.is_frozen() || !payload.join("cgroup.freeze").exists() {
            return Ok(None);
        }
        let mark = helper.mark_held(&payload)?;
        let guard = Self { payload, mark };
        set_frozen(&guard.payload, true)?;
        Ok(Some(guard))
    }
}

/// Waits until a container is frozen.
pub async fn wait_until_frozen(running: &RunningContainer) {
    while !running.is_frozen() {
        sleep(LOOK).await;
    }
}

impl Drop for FreezeGuard {
    fn drop(&mut self) {
        let path = &self.payload;
        // A container that has ended in the meantime needs no unfreezing.
        if let Err(cause) = set_frozen(path, false)
            && path.exists()
        {
            tracing::error!(%cause, ?path, "a frozen container could not be unfrozen");
            return;
        }
        if let Err(cause) = self.mark.remove() {
            tracing::debug!(%cause, ?path, "the mark of a frozen container could not be removed");
        }
    }
}

/// Kills what a lost reaper left in a container, while the whole container is frozen. Otherwise a process that forks
/// and exits repeatedly never lives long enough to be killed. Returns whether it is certain that none is left.
pub async fn kill_frozen(
    helper: &HelperContext,
    container: &RunningContainer,
    processes: &Arc<CallProcesses>,
) -> bool {
    let guard = match FreezeGuard::begin(helper, container) {
        Ok(Some(guard)) => guard,
        // It is already frozen, or has no freezer.
        Ok(None) => return false,
        Err(cause) => {
            tracing::warn!(%cause, "a container could not be frozen");
            return false;
        }
    };
    let killing = async {
        wait_until_frozen(container).await;
        processes.kill_all(1).await;
    };
    let is_dead = timeout(FROZEN_TIME, killing).await.is_ok();
    if !is_dead {
        tracing::warn!("a container could not be frozen at the end of a call");
    }
    drop(guard);
    is_dead
}
