//! A child process held by a pidfd: waiting needs no signal handler, and its number cannot refer to another
//! process.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::process_table::{ProcessStat, open_process, process};

/// A child that only we wait for.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    pidfd: OwnedFd,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Child {
    pub(super) fn new(pid: i32, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    /// Opens a child that is known only by its number.
    pub(super) fn open(pid: i32) -> io::Result<Self> {
        let pidfd = open_process(pid)?;
        Ok(Self { pid, pidfd })
    }

    /// Its process id, which cannot be reused before it has been waited for.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends SIGKILL only to this process. If it has ended already, this is no error.
    pub fn kill(&self) {
        // The number cannot have been reused: only we wait for it.
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
    }

    /// Waits until it has ended; safe to drop while waiting.
    pub async fn wait(&self) -> io::Result<Exit> {
        let ended = watch(self.pidfd.as_fd())?;
        loop {
            if let Some(exit) = self.wait_with(WaitPidFlag::WNOHANG)? {
                return Ok(exit);
            }
            ended.readable().await?.clear_ready();
        }
    }

    /// Waits without a runtime.
    pub fn wait_blocking(&self) -> io::Result<Exit> {
        let exit = self.wait_with(WaitPidFlag::empty())?;
        exit.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn wait_with(&self, how: WaitPidFlag) -> io::Result<Option<Exit>> {
        let id = Id::PIDFd(self.pidfd.as_fd());
        Ok(match waitid(id, how | WaitPidFlag::WEXITED)? {
            WaitStatus::Exited(_, code) => Some(Exit::Code(code)),
            WaitStatus::Signaled(_, signal, _) => Some(Exit::Signal(signal as i32)),
            _ => None,
        })
    }
}

/// Waits until a process has ended, which need not be a child; safe to drop while waiting.
///
/// # Errors
/// Fails if the kernel does not let this process watch another one.
pub async fn wait_for_end(wanted: &ProcessStat) -> io::Result<()> {
    let pidfd = match open_process(wanted.pid) {
        Err(Errno::ESRCH) => return Ok(()),
        opened => opened?,
    };
    // Its number may belong to another process now; from here on it cannot change.
    if process(wanted.pid).is_none_or(|now| now.started != wanted.started) {
        return Ok(());
    }
    watch(pidfd.as_fd())?.readable().await.map(drop)
}

/// A pidfd is readable when its process has ended.
fn watch(pidfd: BorrowedFd<'_>) -> io::Result<AsyncFd<BorrowedFd<'_>>> {
    #[expect(unsafe_code, reason = "AsyncFd needs a descriptor that never changes")]
    // SAFETY: a borrowed descriptor returns the same number and stays open while it is borrowed.
    let watched = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
    Ok(watched)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::super::child::*;

    #[tokio::test]
    async fn the_end_of_a_process_that_is_not_a_child_is_noticed() {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", "sleep 600 >&- & printf $!"]);
        let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = String::new();
        let output = shell.stdout.as_mut().unwrap();
        output.read_to_string(&mut printed).unwrap();
        assert!(shell.wait().unwrap().success());
        let orphan = process(printed.parse().unwrap()).unwrap();
        let before = ProcessStat {
            started: orphan.started - 1,
            ..orphan
        };
        wait_for_end(&before).await.unwrap();
        let pause = std::time::Duration::from_millis(50);
        let early = tokio::time::timeout(pause, wait_for_end(&orphan)).await;
        assert!(early.is_err(), "it lives");
        kill(Pid::from_raw(orphan.pid), Signal::SIGKILL).unwrap();
        wait_for_end(&orphan).await.unwrap();
    }
}
