//! The system calls of a process that keeps all its descendants: subreaper, signals as events, waiting.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::child::Exit;

/// From now on every orphan below this process becomes its child.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// One child that has ended and was waited for; `None` while all live. `Err` with `ECHILD` when there is none.
pub fn reap_any() -> io::Result<Option<(i32, Exit)>> {
    wait_for(Pid::from_raw(-1))
}

/// As [`reap_any`], for one child alone.
pub fn reap(pid: i32) -> io::Result<Option<(i32, Exit)>> {
    wait_for(Pid::from_raw(pid))
}

fn wait_for(pid: Pid) -> io::Result<Option<(i32, Exit)>> {
    match waitpid(pid, Some(WaitPidFlag::WNOHANG))? {
        WaitStatus::Exited(pid, code) => Ok(Some((pid.as_raw(), Exit::Code(code)))),
        WaitStatus::Signaled(pid, signal, _) => {
            Ok(Some((pid.as_raw(), Exit::Signal(signal as i32))))
        }
        _ => Ok(None),
    }
}

/// Why a [`Keeper`] woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    /// A child ended.
    Child,
    /// A signal asked for the end, or the parent died.
    Stop,
    /// The watched pipe was closed by the other side.
    Closed,
}

/// The signals of a reaper, as events instead of interruptions.
#[derive(Debug)]
pub struct Keeper {
    signals: SignalFd,
}

impl Keeper {
    /// Makes this process the keeper of its descendants: it adopts orphans, hears SIGTERM when its parent
    /// dies, and no signal that can be blocked ends it any more.
    pub fn begin() -> io::Result<Self> {
        let all = SigSet::all();
        all.thread_block()?;
        let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        adopt_orphans()?;
        prctl::set_pdeathsig(Signal::SIGTERM)?;
        // Seen in process lists; without it the name is the number of a descriptor.
        let _ = prctl::set_name(c"gatewren-reaper");
        Ok(Self { signals })
    }

    /// Sleeps until something happens. What `pipe` still carries is not read.
    pub fn wait(&self, pipe: BorrowedFd<'_>) -> io::Result<Wake> {
        loop {
            let mut fds = [
                PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
                PollFd::new(pipe, PollFlags::empty()),
            ];
            match poll(&mut fds, PollTimeout::NONE) {
                Err(Errno::EINTR) => continue,
                other => other?,
            };
            if let [_, closed] = &fds
                && closed.any().unwrap_or(true)
            {
                return Ok(Wake::Closed);
            }
            if let Some(wake) = self.signal()? {
                return Ok(wake);
            }
        }
    }

    fn signal(&self) -> io::Result<Option<Wake>> {
        let Some(info) = self.signals.read_signal()? else {
            return Ok(None);
        };
        Ok(match i32::try_from(info.ssi_signo).map(Signal::try_from) {
            Ok(Ok(Signal::SIGCHLD)) => Some(Wake::Child),
            Ok(Ok(Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT)) => {
                Some(Wake::Stop)
            }
            _ => None,
        })
    }
}
