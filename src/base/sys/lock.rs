//! A lock on a directory, so that two servers do not keep the same state.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

use gatewren_portable::files;

/// The largest note of a holder; a larger one is not ours.
const MAX_NOTE: usize = 128;

/// The lock, held until it is dropped; the kernel releases it however the process ends.
#[derive(Debug)]
pub struct DirectoryLock(Flock<File>);

impl DirectoryLock {
    /// Records the holder's pid and address, for commands that run beside it.
    pub fn note(&self, address: Option<SocketAddr>) -> io::Result<()> {
        let address = address.map_or_else(String::new, |address| format!(" {address}"));
        let note = format!("{}{address}\n", getpid());
        self.0.set_len(0)?;
        self.0.write_all_at(note.as_bytes(), 0)
    }
}

/// The process that holds a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHolder {
    pid: Pid,
    /// The address where it listens, as bound; `None` if it serves only the process that started it.
    pub address: Option<SocketAddr>,
}

impl LockHolder {
    /// Returns the holder of a directory from its own note; `None` if no such process runs.
    pub fn of(directory: &Path) -> Option<Self> {
        let note = files::read_bounded(&directory.join("lock"), MAX_NOTE).ok()?;
        let note = String::from_utf8(note).ok()?;
        let mut words = note.split_whitespace();
        let pid: i32 = words.next()?.parse().ok().filter(|pid| *pid > 1)?;
        // The pid of a holder that has ended may have been reused by another program.
        if !has_our_name(pid) && !has_open(pid, &directory.join("lock")) {
            return None;
        }
        Some(Self {
            pid: Pid::from_raw(pid),
            address: words.next().and_then(|address| address.parse().ok()),
        })
    }

    /// Requests a reload of everything: SIGHUP.
    pub fn ask_to_reload(&self) -> io::Result<()> {
        Ok(kill(self.pid, Signal::SIGHUP)?)
    }
}

/// Whether a process is called as this one is.
fn has_our_name(pid: i32) -> bool {
    let name_of = |of: &str| fs::read(format!("/proc/{of}/comm")).ok();
    let name = name_of(&pid.to_string());
    name.is_some() && name == name_of("self")
}

/// Whether a process has a file open. A program under another file name has another name too.
fn has_open(pid: i32, file: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    let wanted = id(file);
    let open = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut open = open.into_iter().flatten().flatten();
    wanted.is_some() && open.any(|open| id(&open.path()) == wanted)
}

/// Locks a directory by a file `lock` in it; `WouldBlock` when another process holds it.
pub fn lock_directory(directory: &Path) -> io::Result<DirectoryLock> {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join("lock"))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(DirectoryLock(lock)),
        Err((_, errno)) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use gatewren_portable::Scratch;

    #[test]
    fn a_directory_is_held_once() {
        let scratch = Scratch::new();
        let held = lock_directory(scratch.path()).unwrap();
        let second = lock_directory(scratch.path()).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        lock_directory(scratch.path()).unwrap();
    }

    #[test]
    fn who_holds_it_can_be_found_and_nobody_else_is() {
        let scratch = Scratch::new();
        assert_eq!(LockHolder::of(scratch.path()), None);
        let held = lock_directory(scratch.path()).unwrap();
        assert_eq!(LockHolder::of(scratch.path()), None, "it has not said so");
        let address = "127.0.0.1:8443".parse().unwrap();
        held.note(Some(address)).unwrap();
        let found = LockHolder::of(scratch.path()).unwrap();
        assert_eq!((found.pid, found.address), (getpid(), Some(address)));
        held.note(None).unwrap();
        assert_eq!(LockHolder::of(scratch.path()).unwrap().address, None);
        for other in ["", "1", "0 127.0.0.1:1", "x", "-1", "4194305"] {
            fs::write(scratch.join("lock"), other).unwrap();
            assert_eq!(LockHolder::of(scratch.path()), None, "{other}");
        }
    }

    #[test]
    fn a_holder_with_another_name_is_known_by_its_open_file() {
        let scratch = Scratch::new();
        let lock = scratch.join("lock");
        for has_it_open in [true, false] {
            fs::write(&lock, "").unwrap();
            let input = if has_it_open {
                Stdio::from(File::open(&lock).unwrap())
            } else {
                Stdio::null()
            };
            let mut other = Command::new("sleep");
            let mut other = other.arg("60").stdin(input).spawn().unwrap();
            fs::write(&lock, format!("{} 127.0.0.1:8443", other.id())).unwrap();
            let found = LockHolder::of(scratch.path());
            other.kill().unwrap();
            other.wait().unwrap();
            assert_eq!(found.is_some(), has_it_open);
        }
    }
}
