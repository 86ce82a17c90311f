//! Starts the reapers of commands on the host: forked by a fork server, or from this program's file where there is none.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use gatewren_base::sys::{Child, FORKED_FDS, ForkError, ForkServer, Spawn, SpawnError, lock};

use super::orphans::{Orphans, TrackedChild};

/// The fork server of a helper.
#[derive(Debug, Default)]
pub struct ReaperSource {
    server: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    server: ForkServer,
    /// Kept so that it counts as no stray.
    _process: TrackedChild,
}

impl ReaperSource {
    /// Starts the fork server, which runs `reap` in each process that it forks; before this process has further threads.
    /// Without one, each reaper is started from this program's file, which takes a millisecond longer.
    pub fn start(&self, orphans: &Arc<Orphans>, reap: fn() -> u8) {
        match ForkServer::start(reap) {
            Ok((server, process)) => {
                let running = Running {
                    server,
                    _process: orphans.track(process),
                };
                *lock(&self.server) = Some(running);
            }
            Err(cause) => tracing::warn!(%cause, "commands start more slowly: no fork server"),
        }
    }

    /// Starts a reaper with the descriptors, the cgroup and the audit session of `spawn`.
    pub fn reaper(
        &self,
        orphans: &Arc<Orphans>,
        spawn: &Spawn<'_>,
    ) -> Result<TrackedChild, SpawnError> {
        let mut server = lock(&self.server);
        match server.as_ref().map(|running| fork(&running.server, spawn)) {
            Some(Ok(child)) => return Ok(orphans.track(child)),
            Some(Err(ForkError::Gone(cause))) => {
                tracing::warn!(%cause, "the fork server is gone; commands start more slowly");
                *server = None;
            }
            Some(Err(ForkError::Refused(cause))) => {
                tracing::debug!(%cause, "the fork server forked no reaper");
            }
            None => {}
        }
        orphans.start(spawn)
    }
}

fn fork(server: &ForkServer, spawn: &Spawn<'_>) -> Result<Child, ForkError> {
    let fds: Option<&[BorrowedFd<'_>; FORKED_FDS]> = spawn.fds.first_chunk();
    let fds = fds.ok_or_else(|| ForkError::Refused(io::ErrorKind::InvalidInput.into()))?;
    server.fork(*fds, spawn.cgroup)
}
