//! A container whose processes stand still for a while, and go on afterwards whatever happens meanwhile.

use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::sys::{Cgroup, hold};

use super::{
    containers::Running,
    halt::{Halt, Work},
    refusal::Refusal,
};

/// How long its processes may take to stand still; then they go on.
const FREEZE_TIME: Duration = Duration::from_secs(10);

/// How often it is looked whether they do.
const LOOK: Duration = Duration::from_millis(5);

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
    /// Has them stand still; nothing where there is no cgroup of version 2 for it, or where they do already.
    pub async fn hold(work: &mut Work<'_>, running: &Running) -> Result<Option<Self>, Halt> {
        let Some(payload) = running.payload.clone() else {
            return Ok(None);
        };
        if running.is_frozen() || !payload.join("cgroup.freeze").exists() {
            return Ok(None);
        }
        let unheld = |cause: std::io::Error| {
            Refusal::failed(format!("the container cannot be frozen: {cause}"))
        };
        let mark = work.house.mark_held(&payload).map_err(unheld)?;
        let frost = Self { payload, mark };
        hold(&frost.payload, true).map_err(unheld)?;
        let still = async {
            while !running.is_frozen() {
                sleep(LOOK).await;
            }
        };
        match work.pump.wait(timeout(FREEZE_TIME, still)).await {
            Ok(Ok(())) => Ok(Some(frost)),
            Ok(Err(_)) => {
                let message = "the container's processes do not stand still; let them run meanwhile (freeze: false)";
                Err(Refusal::failed(message).into())
            }
            Err(why) => Err(Halt::Killed(why)),
        }
    }
}

impl Drop for Frost {
    fn drop(&mut self) {
        let path = &self.payload;
        // One that has ended meanwhile is held by nobody.
        if let Err(cause) = hold(path, false)
            && path.exists()
        {
            tracing::error!(%cause, ?path, "a container that was frozen for a backup does not go on");
            return;
        }
        if let Err(cause) = self.mark.remove() {
            tracing::debug!(%cause, ?path, "the mark of a frozen container stays");
        }
    }
}
