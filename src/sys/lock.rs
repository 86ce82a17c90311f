//! A lock on a directory, so that two servers do not keep the same state.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::{Flock, FlockArg};

/// Held as long as it lives; the kernel lets go of it when the process ends in whatever way.
#[derive(Debug)]
pub struct DirectoryLock(#[expect(dead_code, reason = "dropping it is its use")] Flock<File>);

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
    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_directory_is_held_once() {
        let scratch = Scratch::new();
        let held = lock_directory(scratch.path()).unwrap();
        let second = lock_directory(scratch.path()).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        lock_directory(scratch.path()).unwrap();
    }
}
