//! A container whose processes stand still for a while, and go on afterwards whatever happens meanwhile.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::sys::{Cgroup, hold};

use super::{call_processes::CallProcesses, containers::Running, house::House};

/// How long a container may be frozen while the processes of a call are found and killed there.
const FROZEN_TIME: Duration = Duration::from_secs(1);

/// How often it is looked whether they do.
const LOOK: Duration = Duration::from_millis(1);

/// Holds a container's processes as long as it lives.
///
/// LXC is not asked, so that ending it needs nobody's answer; and a mark in the container's own cgroup says whose work
/// it is: when this helper is killed, the next one, or what systemd runs after it, has them go on.
#[derive(Debug)]
pub struct Frost {
    payload: PathBuf,
    mark: Cgroup,
}

impl Frost {
    /// Tells the kernel to hold them; [`still`] waits until it does. Nothing where there is no cgroup of version 2 for it,
    /// or where they are frozen already.
    pub fn begin(house: &House, running: &Running) -> io::Result<Option<Self>> {
        let Some(payload) = running.payload.clone() else {
            return Ok(None);
        };
        if running.is_frozen() || !payload.join("cgroup.freeze").exists() {
            return Ok(None);
        }
        let mark = house.mark_held(&payload)?;
        let frost = Self { payload, mark };
        hold(&frost.payload, true)?;
        Ok(Some(frost))
    }
}

/// Waits until a container is frozen.
pub async fn still(running: &Running) {
    while !running.is_frozen() {
        sleep(LOOK).await;
    }
}

impl Drop for Frost {
    fn drop(&mut self) {
        let path = &self.payload;
        // One that has ended meanwhile is held by nobody.
        if let Err(cause) = hold(path, false)
            && path.exists()
        {
            tracing::error!(%cause, ?path, "a frozen container does not go on");
            return;
        }
        if let Err(cause) = self.mark.remove() {
            tracing::debug!(%cause, ?path, "the mark of a frozen container stays");
        }
    }
}

/// Kills what a lost reaper left in a container, while all processes of that container are frozen: one that forks and
/// ends again and again is nowhere long enough to be killed otherwise. Whether none is left for certain.
pub async fn kill_frozen(
    house: &House,
    container: &Running,
    processes: &Arc<CallProcesses>,
) -> bool {
    let frost = match Frost::begin(house, container) {
        Ok(Some(frost)) => frost,
        // It is frozen already, or has no freezer.
        Ok(None) => return false,
        Err(cause) => {
            tracing::warn!(%cause, "a container could not be frozen");
            return false;
        }
    };
    let killing = async {
        still(container).await;
        processes.kill_all(1).await;
    };
    let is_dead = timeout(FROZEN_TIME, killing).await.is_ok();
    if !is_dead {
        tracing::warn!("a container could not be frozen at the end of a call");
    }
    drop(frost);
    is_dead
}
