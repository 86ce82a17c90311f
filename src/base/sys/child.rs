//! A child process held by a pidfd: waiting needs no signal handler, and its number cannot refer to another
//! process.

use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

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
        #[expect(unsafe_code, reason = "pidfd_open has no safe wrapper")]
        // SAFETY: takes two numbers and returns a new descriptor.
        let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        #[expect(unsafe_code, reason = "the kernel returns a bare number")]
        // SAFETY: the descriptor is new; nothing else owns it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(fd) };
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
        let pidfd = self.pidfd.as_fd();
        #[expect(unsafe_code, reason = "AsyncFd needs a descriptor that never changes")]
        // SAFETY: a borrowed descriptor returns the same number and stays open while it is borrowed.
        let ended = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) }?;
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
