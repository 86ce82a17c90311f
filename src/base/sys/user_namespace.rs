//! Who has power over a process by its user namespace, as `ioctl_ns(2)` reports it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;

use nix::errno::Errno;
use nix::libc;

use super::process_table::own_pid;

/// The requests of `ioctl_ns(2)`, which libc has no constants for: `_IO(0xb7, 2)` and `_IO(0xb7, 4)`.
const NS_GET_PARENT: libc::Ioctl = 0xb702;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;

/// The kernel nests user namespaces at most this deep (`user_namespaces(7)`).
const MAX_DEPTH: usize = 32;

/// Returns whether a process is in a user namespace that a user has created, or in one below it. Whatever rights the
/// process has there, it has none outside that the user does not have.
///
/// The namespace of this process does not count, whoever created it.
///
/// # Errors
/// If the process has ended, or this process may not look at its namespace.
pub fn is_in_namespace_of(pid: i32, uid: u32) -> io::Result<bool> {
    let own = identity(&open(own_pid())?)?;
    let mut namespace = open(pid)?;
    for _ in 0..MAX_DEPTH {
        if identity(&namespace)? == own {
            return Ok(false);
        }
        if owner(&namespace)? == uid {
            return Ok(true);
        }
        namespace = match parent(&namespace) {
            // The one above is not below this process's own.
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            other => other?,
        };
    }
    Ok(false)
}

fn open(pid: i32) -> io::Result<File> {
    File::open(format!("/proc/{pid}/ns/user"))
}

fn identity(namespace: &File) -> io::Result<(u64, u64)> {
    let facts = namespace.metadata()?;
    Ok((facts.dev(), facts.ino()))
}

fn owner(namespace: &File) -> io::Result<u32> {
    let mut uid: libc::uid_t = u32::MAX;
    #[expect(unsafe_code, reason = "the ioctl has no safe wrapper")]
    // SAFETY: the kernel writes a user id to `uid`, which lives through the call.
    let result = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID, &raw mut uid) };
    Errno::result(result)?;
    Ok(uid)
}

fn parent(namespace: &File) -> io::Result<File> {
    #[expect(unsafe_code, reason = "the ioctl has no safe wrapper")]
    // SAFETY: takes no argument.
    let result = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT) };
    let number = Errno::result(result)?;
    #[expect(unsafe_code, reason = "the kernel returns a bare number")]
    // SAFETY: a new descriptor, which nothing else owns.
    let above = unsafe { OwnedFd::from_raw_fd(number) };
    Ok(above.into())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, Stdio};

    use super::super::process_table::{is_root, own_uid};
    use super::super::skip::skip;
    use super::*;

    /// A user that is neither root nor the one of the tests.
    const OTHER_UID: u32 = 12_345;

    /// Starts a process of a user in that many namespaces, one in the other. Returns when it is in the innermost.
    fn nested(uid: u32, depth: usize) -> Child {
        let mut words = ["unshare", "--user", "--map-root-user"].repeat(depth);
        words.extend(["sh", "-c", "echo; exec sleep 60"]);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdout(Stdio::piped());
        if is_root() {
            command.uid(uid).gid(uid);
        }
        let mut child = command.spawn().unwrap();
        let _ = child.stdout.as_mut().unwrap().read_exact(&mut [0]);
        child
    }

    #[test]
    fn a_process_below_a_users_namespace_belongs_to_that_user_alone() {
        let uid = if is_root() { OTHER_UID } else { own_uid() };
        for depth in [1, 3] {
            let mut child = nested(uid, depth);
            let pid = i32::try_from(child.id()).unwrap();
            if child.try_wait().unwrap().is_some() {
                return skip("user namespaces are not allowed here");
            }
            let found = [uid, uid + 1].map(|uid| is_in_namespace_of(pid, uid));
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(matches!(found, [Ok(true), Ok(false)]), "{found:?}");
        }
    }

    #[test]
    fn a_process_in_the_namespace_of_the_host_belongs_to_no_user() {
        assert!(!is_in_namespace_of(own_pid(), own_uid()).unwrap());
        assert!(!is_in_namespace_of(own_pid(), 0).unwrap());
        assert!(is_in_namespace_of(i32::MAX, 0).is_err());
    }
}
