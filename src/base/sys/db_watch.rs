//! Waits for a file to be written or for a call from another thread, whichever comes first.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::time::TimeSpec;

/// The waiting end; it belongs to one thread.
#[derive(Debug)]
pub struct FileWaiter {
    calls: UnixStream,
    file: Option<Inotify>,
}

/// The calling end; any thread may hold it.
#[derive(Debug)]
pub struct FileWaker {
    calls: UnixStream,
}

/// What ended a wait; both are `false` after a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileWaitResult {
    /// The watched file was written.
    pub written: bool,
    /// [`FileWaker::wake`] was called, or the waker was dropped.
    pub called: bool,
}

impl FileWaiter {
    /// Creates a waiter and its waker; no file is watched yet.
    pub fn new() -> io::Result<(Self, FileWaker)> {
        let (calls, caller) = UnixStream::pair()?;
        calls.set_nonblocking(true)?;
        caller.set_nonblocking(true)?;
        let waiter = Self { calls, file: None };
        Ok((waiter, FileWaker { calls: caller }))
    }

    /// Watches `file` for writes from now on (inotify(7)); it must exist.
    ///
    /// Fails if the user's inotify instances or watches are used up.
    pub fn watch(&mut self, file: &Path) -> io::Result<()> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        inotify.add_watch(file, AddWatchFlags::IN_MODIFY)?;
        self.file = Some(inotify);
        Ok(())
    }

    /// Returns whether a file is watched.
    pub fn watches(&self) -> bool {
        self.file.is_some()
    }

    /// Waits until something happens or `at_most` has passed; several writes or calls count as one.
    pub fn wait(&self, at_most: Duration) -> io::Result<FileWaitResult> {
        let mut fds = vec![PollFd::new(self.calls.as_fd(), PollFlags::POLLIN)];
        if let Some(file) = &self.file {
            fds.push(PollFd::new(file.as_fd(), PollFlags::POLLIN));
        }
        match ppoll(&mut fds, Some(TimeSpec::from_duration(at_most)), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ready = |fd: Option<&PollFd<'_>>| fd.and_then(PollFd::any).unwrap_or(false);
        let woken = FileWaitResult {
            called: ready(fds.first()),
            written: ready(fds.get(1)),
        };
        self.forget(woken);
        Ok(woken)
    }

    /// Waits until a call comes or `at_most` has passed, ignoring the file; returns whether a call came.
    ///
    /// A write during this wait ends the next [`Self::wait`].
    pub fn rest(&self, at_most: Duration) -> io::Result<bool> {
        let mut calls = [PollFd::new(self.calls.as_fd(), PollFlags::POLLIN)];
        let called = match ppoll(&mut calls, Some(TimeSpec::from_duration(at_most)), None) {
            Ok(ready) => ready > 0,
            Err(Errno::EINTR) => false,
            Err(errno) => return Err(errno.into()),
        };
        self.forget(FileWaitResult {
            called,
            written: false,
        });
        Ok(called)
    }

    /// Drains the signalled events from the kernel's queues, so that the next wait blocks.
    fn forget(&self, woken: FileWaitResult) {
        if woken.called {
            let mut calls = [0; 64];
            while (&self.calls).read(&mut calls).is_ok_and(|n| n > 0) {}
        }
        if woken.written
            && let Some(file) = &self.file
        {
            while file.read_events().is_ok_and(|events| !events.is_empty()) {}
        }
    }
}

impl FileWaker {
    /// Ends the current wait, or the next one.
    pub fn wake(&self) {
        // A full socket means that enough calls are pending already.
        let _ = (&self.calls).write(&[1]);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Instant;

    use super::*;
    use gatewren_portable::Scratch;

    const LONG: Duration = Duration::from_mins(2);

    #[test]
    fn a_call_ends_the_wait_and_is_forgotten() {
        let (waiter, waker) = FileWaiter::new().unwrap();
        for _ in 0..100_000 {
            waker.wake();
        }
        assert!(waiter.wait(LONG).unwrap().called);
        let start = Instant::now();
        assert_eq!(
            waiter.wait(Duration::from_millis(5)).unwrap(),
            FileWaitResult::default()
        );
        assert!(start.elapsed() >= Duration::from_millis(5));
    }

    #[test]
    fn a_write_ends_the_wait_and_is_forgotten() {
        let scratch = Scratch::new();
        let file = scratch.join("file");
        fs::write(&file, "a").unwrap();
        let (mut waiter, _waker) = FileWaiter::new().unwrap();
        waiter.watch(&file).unwrap();
        assert!(!waiter.wait(Duration::ZERO).unwrap().written);
        fs::write(&file, "b").unwrap();
        assert!(waiter.wait(LONG).unwrap().written);
        assert!(!waiter.wait(Duration::from_millis(1)).unwrap().written);
    }

    #[test]
    fn a_rest_hears_calls_alone_and_forgets_no_write() {
        let scratch = Scratch::new();
        let file = scratch.join("file");
        fs::write(&file, "a").unwrap();
        let (mut waiter, waker) = FileWaiter::new().unwrap();
        waiter.watch(&file).unwrap();
        fs::write(&file, "b").unwrap();
        assert!(!waiter.rest(Duration::from_millis(1)).unwrap());
        waker.wake();
        assert!(waiter.rest(LONG).unwrap());
        let woken = waiter.wait(LONG).unwrap();
        assert!(woken.written && !woken.called, "{woken:?}");
    }

    #[test]
    fn a_waker_that_is_gone_ends_the_wait() {
        let (waiter, waker) = FileWaiter::new().unwrap();
        drop(waker);
        assert!(waiter.wait(LONG).unwrap().called);
        assert!(waiter.rest(LONG).unwrap());
    }
}
