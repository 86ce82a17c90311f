//! Locks on a directory: of each server that keeps its state there, and of the one that does the background work.

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

/// The file of the lock of a server without a name, and the beginning of the others.
const LOCK: &str = "lock";

/// The file of the lock of the background work.
const WORKERS: &str = "workers.lock";

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    pid: Pid,
    /// Its name, if it is one of several.
    pub name: Option<String>,
    /// Whether it does the background work.
    pub does_background_work: bool,
    /// The address where it listens, as bound; `None` if it serves only the process that started it.
    pub address: Option<SocketAddr>,
}

impl LockHolder {
    /// Returns the holder of a directory from its own note; `None` if no such process runs. Of several, it is the
    /// one without a name, or else the first by name.
    pub fn of(directory: &Path) -> Option<Self> {
        Self::all(directory).into_iter().next()
    }

    /// Returns all processes that hold the directory, in the order of their names.
    pub fn all(directory: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|name| {
                name == LOCK || name.strip_prefix(LOCK).is_some_and(|n| n.starts_with('.'))
            })
            .collect();
        names.sort_unstable();
        let working = Self::in_note(directory, WORKERS).map(|holder| holder.pid);
        let holders = names.iter().filter_map(|name| {
            let holder = Self::in_note(directory, name)?;
            Some(Self {
                does_background_work: working == Some(holder.pid),
                ..holder
            })
        });
        holders.collect()
    }

    fn in_note(directory: &Path, name: &str) -> Option<Self> {
        let file = directory.join(name);
        let note = files::read_bounded(&file, MAX_NOTE).ok()?;
        let note = String::from_utf8(note).ok()?;
        let mut words = note.split_whitespace();
        let pid: i32 = words.next()?.parse().ok().filter(|pid| *pid > 1)?;
        // The pid of a holder that has ended may have been reused by another program.
        if !has_our_name(pid) && !has_open(pid, &file) {
            return None;
        }
        Some(Self {
            pid: Pid::from_raw(pid),
            name: name
                .strip_prefix(LOCK)
                .and_then(|rest| rest.strip_prefix('.'))
                .map(str::to_owned),
            does_background_work: false,
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
    lock_file(directory, LOCK, FlockArg::LockExclusiveNonblock)
}

/// Locks a directory by a file `lock` in it; blocks the thread until no other process holds it.
pub fn wait_for_directory_lock(directory: &Path) -> io::Result<DirectoryLock> {
    lock_file(directory, LOCK, FlockArg::LockExclusive)
}

/// Locks a directory for one of several servers that share it, by a file `lock.NAME` in it. `WouldBlock` when another
/// process has the same name.
pub fn lock_instance(directory: &Path, name: &str) -> io::Result<DirectoryLock> {
    let file = format!("{LOCK}.{name}");
    lock_file(directory, &file, FlockArg::LockExclusiveNonblock)
}

/// Takes the lock of the server that does the background work in a directory, and notes who has it; `WouldBlock` when
/// another one does.
pub fn lock_workers(directory: &Path) -> io::Result<DirectoryLock> {
    let lock = lock_file(directory, WORKERS, FlockArg::LockExclusiveNonblock)?;
    lock.note(None)?;
    Ok(lock)
}

/// Waits, and blocks the thread, until this process has that lock. The kernel passes it on at once when its holder
/// ends, however that ends.
pub fn wait_for_workers_lock(directory: &Path) -> io::Result<DirectoryLock> {
    let lock = lock_file(directory, WORKERS, FlockArg::LockExclusive)?;
    lock.note(None)?;
    Ok(lock)
}

fn lock_file(directory: &Path, name: &str, how: FlockArg) -> io::Result<DirectoryLock> {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(directory.join(name))?;
    match Flock::lock(file, how) {
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
    fn servers_with_names_share_a_directory_and_one_does_the_background_work() {
        let scratch = Scratch::new();
        let unnamed = lock_directory(scratch.path()).unwrap();
        let named = lock_instance(scratch.path(), "b").unwrap();
        let again = lock_instance(scratch.path(), "b").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::WouldBlock);
        let address = |port: u16| Some(([127, 0, 0, 1], port).into());
        named.note(address(2)).unwrap();
        assert_eq!(LockHolder::of(scratch.path()).unwrap().address, address(2));
        unnamed.note(address(1)).unwrap();
        let all: Vec<_> = LockHolder::all(scratch.path())
            .iter()
            .map(|holder| holder.address)
            .collect();
        assert_eq!(
            all,
            [address(1), address(2)],
            "the one without a name is first"
        );

        let who = || {
            let all = LockHolder::all(scratch.path()).into_iter();
            let who = all.map(|holder| (holder.name, holder.does_background_work));
            who.collect::<Vec<_>>()
        };
        let named_b = || Some("b".to_owned());
        assert_eq!(who(), [(None, false), (named_b(), false)]);
        let working = lock_workers(scratch.path()).unwrap();
        // This process holds both locks, so both servers have its pid.
        assert_eq!(who(), [(None, true), (named_b(), true)]);
        assert!(lock_workers(scratch.path()).is_err());
        let path = scratch.path().to_owned();
        let waiting = std::thread::spawn(move || wait_for_workers_lock(&path).unwrap());
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!waiting.is_finished());
        drop(working);
        let _next = waiting.join().unwrap();
        assert!(lock_workers(scratch.path()).is_err());
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
