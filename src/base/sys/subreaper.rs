//! System calls of a process that keeps all its descendants: subreaper, signals as events, waiting.

use std::ffi::CStr;
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

/// The name of the process that is a call's reaper.
pub const REAPER_NAME: &CStr = c"gatewren-reaper";

/// Makes every orphan below this process its child from now on.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(prctl::set_child_subreaper(true)?)
}

/// Reaps one child that has ended; `None` while all are alive. `Err` with `ECHILD` when there is no child.
pub fn reap_any() -> io::Result<Option<(i32, Exit)>> {
    wait_for(Pid::from_raw(-1))
}

/// Like [`reap_any`], for only one child.
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

/// Why a [`Subreaper`] woke up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubreaperEvent {
    /// A child ended.
    Child,
    /// A signal requested termination, or the parent died.
    Stop,
    /// The other side closed the watched pipe.
    Closed,
}

/// The signals of a reaper, as events instead of interruptions.
#[derive(Debug)]
pub struct Subreaper {
    signals: SignalFd,
}

impl Subreaper {
    /// Makes this process the subreaper of its descendants: it adopts orphans and gets SIGTERM when its parent dies.
    /// No signal that can be blocked kills it any more.
    pub fn begin() -> io::Result<Self> {
        let all = SigSet::all();
        all.thread_block()?;
        let signals = SignalFd::with_flags(&all, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        adopt_orphans()?;
        prctl::set_pdeathsig(Signal::SIGTERM)?;
        // Shown in process lists; without it the name would be the number of a descriptor.
        let _ = prctl::set_name(REAPER_NAME);
        Ok(Self { signals })
    }

    /// Waits until something happens. Data in `pipe` is not read.
    pub fn wait(&self, pipe: BorrowedFd<'_>) -> io::Result<SubreaperEvent> {
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
                return Ok(SubreaperEvent::Closed);
            }
            if let Some(wake) = self.signal()? {
                return Ok(wake);
            }
        }
    }

    fn signal(&self) -> io::Result<Option<SubreaperEvent>> {
        let Some(info) = self.signals.read_signal()? else {
            return Ok(None);
        };
        Ok(match i32::try_from(info.ssi_signo).map(Signal::try_from) {
            Ok(Ok(Signal::SIGCHLD)) => Some(SubreaperEvent::Child),
            Ok(Ok(Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT)) => {
                Some(SubreaperEvent::Stop)
            }
            _ => None,
        })
    }
}
