//! Watches names in directories for files that are created, removed or changed (inotify).

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, RawFd};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};

/// The watched names.
#[derive(Debug)]
pub struct NameWatch {
    inotify: Inotify,
    watched: Vec<(WatchDescriptor, Vec<OsString>)>,
}

impl NameWatch {
    /// Creates a watch of no names. Fails if the user's inotify instances are used up.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        let watched = Vec::new();
        Ok(Self { inotify, watched })
    }

    /// Watches these names in a directory, whether they exist or not.
    ///
    /// Reports a file that was written and closed, replaced, created or removed. For a link, its own name is
    /// watched, not its target.
    pub fn watch(&mut self, directory: &Path, names: &[&str]) -> io::Result<()> {
        let changes = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_MOVED_TO;
        let watch = self
            .inotify
            .add_watch(directory, changes | AddWatchFlags::IN_ONLYDIR)?;
        let names = names.iter().map(OsString::from).collect();
        self.watched.push((watch, names));
        Ok(())
    }

    /// Reads all pending events, and returns whether any of them concerns a watched name.
    pub fn take(&self) -> io::Result<bool> {
        let mut counts = false;
        loop {
            match self.inotify.read_events() {
                Ok(events) if events.is_empty() => return Ok(counts),
                Ok(events) => {
                    counts |= events.iter().any(|event| {
                        let lost = event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW);
                        lost || self.is_watched(event.wd, event.name.as_ref())
                    });
                }
                Err(Errno::EAGAIN) => return Ok(counts),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn is_watched(&self, at: WatchDescriptor, name: Option<&OsString>) -> bool {
        let names = self.watched.iter().filter(|(watch, _)| *watch == at);
        name.is_some_and(|name| names.into_iter().any(|(_, names)| names.contains(name)))
    }
}

impl AsRawFd for NameWatch {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use gatewren_portable::Scratch;

    #[test]
    fn only_watched_names_count() {
        let scratch = Scratch::new();
        let mut names = NameWatch::new().unwrap();
        names.watch(scratch.path(), &["a", "b"]).unwrap();
        assert!(!names.take().unwrap());
        fs::write(scratch.join("other"), "x").unwrap();
        assert!(!names.take().unwrap());
        fs::write(scratch.join("a"), "x").unwrap();
        assert!(names.take().unwrap() && !names.take().unwrap());
        fs::rename(scratch.join("other"), scratch.join("b")).unwrap();
        assert!(names.take().unwrap());
        fs::remove_file(scratch.join("a")).unwrap();
        assert!(names.take().unwrap() && !names.take().unwrap());
        assert!(names.watch(&scratch.join("none"), &["a"]).is_err());
    }
}
