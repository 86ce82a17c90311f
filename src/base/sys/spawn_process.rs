//! Starts the process of a [`Spawn`], and reports why it could not be started.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;

use nix::sys::signal::{SigSet, SigmaskHow};

use super::child::Child;
use super::descriptors::pipe;
use super::spawn::{Spawn, SpawnError, SpawnStage};
use super::spawn_plan::SpawnPlan;

impl Spawn<'_> {
    /// Starts it. Returns when the program itself runs (after `execve`), or the error of the step that failed.
    ///
    /// The program gets a new session, umask 022 and default signals. With `OnParentExit::Dies` it gets SIGKILL when
    /// its parent's thread ends. All data for the child is prepared before the fork: between fork and exec only
    /// system calls are allowed, because another thread may have held the allocator's lock.
    pub fn spawn(&self) -> Result<Child, SpawnError> {
        let fork_failed = |cause: io::Error| SpawnError {
            stage: SpawnStage::Fork,
            cause,
        };
        let (error_pipe, report) = pipe().map_err(fork_failed)?;
        let plan = SpawnPlan::of(self, report.as_raw_fd(), None);
        let old_mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let old_mask = old_mask.map_err(|e| fork_failed(e.into()))?;
        let forked = plan.fork();
        let restored = old_mask.thread_set_mask();
        let child = forked.map_err(fork_failed)?;
        restored.map_err(|e| fork_failed(e.into()))?;
        drop(report);
        match read_spawn_error(File::from(error_pipe)) {
            None => Ok(child),
            Some(error) => {
                // The child exits right after its report, so this wait is short.
                let _ = child.wait_blocking();
                Err(error)
            }
        }
    }

    /// Forks a process that runs `run` instead of a program, and exits with its result. Its parent is the parent of this
    /// process, which must have no other thread. Returns its process id when it runs.
    pub(super) fn fork_sibling(&self, run: fn() -> u8) -> Result<i32, SpawnError> {
        let fork_failed = |cause: io::Error| SpawnError {
            stage: SpawnStage::Fork,
            cause,
        };
        let (error_pipe, report) = pipe().map_err(fork_failed)?;
        let plan = SpawnPlan::of(self, report.as_raw_fd(), Some(run));
        let pid = plan.fork_sibling().map_err(fork_failed)?;
        drop(report);
        match read_spawn_error(File::from(error_pipe)) {
            None => Ok(pid),
            Some(error) => Err(error),
        }
    }
}

/// Reads the error that the child reported; `None` when `execve` closed the pipe.
fn read_spawn_error(mut pipe: File) -> Option<SpawnError> {
    let mut bytes = [0; 5];
    pipe.read_exact(&mut bytes).ok()?;
    let [stage, a, b, c, d] = bytes;
    let stage = match stage {
        1 => SpawnStage::Cgroup,
        2 => SpawnStage::Descriptors,
        3 => SpawnStage::Identity,
        4 => SpawnStage::Directory,
        _ => SpawnStage::Program,
    };
    let cause = io::Error::from_raw_os_error(i32::from_ne_bytes([a, b, c, d]));
    Some(SpawnError { stage, cause })
}
