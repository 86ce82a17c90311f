//! File descriptors: pipes, inherited sockets, and closing all that a program must not inherit.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::pipe2;

/// The most descriptors that are passed to one program.
const MAX_FDS: usize = 8;

/// Descriptors are moved to this number or above before they are put where the program expects them.
const OUT_OF_THE_WAY: c_int = 64;

/// Creates a pipe, reading end first; both ends close at `execve`.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe2(OFlag::O_CLOEXEC)?)
}

/// Returns the two inherited descriptors of a helper's reaper: its pipes.
///
/// Call it once, before anything else: it takes ownership of descriptors 3 and 4.
pub fn launch_pipes() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok((take(3)?, take(4)?))
}

/// Takes a listening socket that the parent left open at `fd`.
///
/// # Errors
/// If there is no listening Unix socket at that number.
pub fn adopt_socket(fd: RawFd) -> io::Result<UnixListener> {
    let socket = take(fd)?;
    if getsockopt(&socket, sockopt::AcceptConn)? {
        Ok(UnixListener::from(socket))
    } else {
        Err(io::Error::other("the socket does not listen"))
    }
}

/// Sets close-on-exec on every descriptor from `first` on. Makes only system calls: safe after a fork.
fn close_from(first: c_int) {
    /// The last descriptor that is visited if close-on-exec must be set one by one.
    const LAST: c_int = 4096;
    let (first_u, last) = (first.unsigned_abs(), u32::MAX);
    let how = libc::CLOSE_RANGE_CLOEXEC;
    #[expect(unsafe_code, reason = "close_range has no safe wrapper")]
    // SAFETY: takes three numbers; sets a flag that this process's own code never relies on being unset.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first_u, last, how) };
    if done == 0 {
        return;
    }
    for fd in first..LAST {
        #[expect(unsafe_code, reason = "any number may be open here")]
        // SAFETY: sets the same flag; for a number that is not open it fails.
        unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

fn take(fd: RawFd) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "a descriptor from the parent is a bare number")]
    // SAFETY: checks that the number is open, and keeps it from the programs that we start.
    Errno::result(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    #[expect(unsafe_code, reason = "a descriptor from the parent is a bare number")]
    // SAFETY: it is open, and our callers take each number once, before anything else is opened.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Puts `fds` at 0, 1, 2 and so on, and sets close-on-exec on every other descriptor.
pub(super) fn place(fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut away = [-1; MAX_FDS];
    for (slot, fd) in away.iter_mut().zip(fds) {
        *slot = move_away(fd.as_raw_fd())?;
    }
    let mut first_other: c_int = 0;
    for (target, source) in (0..).zip(away.iter().take(fds.len())) {
        #[expect(unsafe_code, reason = "descriptors are bare numbers in the child")]
        // SAFETY: this process is a copy that shares no descriptor table; nothing owns `target` here.
        Errno::result(unsafe { libc::dup2(*source, target) })?;
        first_other = target + 1;
    }
    close_from(first_other);
    Ok(())
}

/// Duplicates a descriptor to a number above those that the programs get.
pub(super) fn duplicate_above(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let moved = move_away(fd.as_raw_fd())?;
    #[expect(unsafe_code, reason = "the kernel returns a bare number")]
    // SAFETY: the descriptor is new; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}

/// Closes every descriptor from `first` on, except two. Makes only system calls: safe after a fork, in a copy that uses
/// none of those it closes.
pub(super) fn close_all_but(first: c_int, keep: [RawFd; 2]) {
    let [low, high] = [keep[0].min(keep[1]), keep[0].max(keep[1])];
    let ranges = [
        (first, low - 1),
        (low + 1, high - 1),
        (high + 1, c_int::MAX),
    ];
    for (from, to) in ranges {
        let from = from.max(first);
        if from > to {
            continue;
        }
        let (from, to) = (from.unsigned_abs(), to.unsigned_abs());
        #[expect(unsafe_code, reason = "close_range has no safe wrapper")]
        // SAFETY: the caller uses none of these any more. Where the kernel does not know the call, they stay open.
        unsafe {
            libc::syscall(libc::SYS_close_range, from, to, 0);
        }
    }
}

/// Duplicates a descriptor to a number above those that the program gets; it closes at `execve`. Makes only system
/// calls.
pub(super) fn move_away(fd: RawFd) -> Result<RawFd, Errno> {
    #[expect(unsafe_code, reason = "descriptors are bare numbers in the child")]
    // SAFETY: creates a new descriptor and changes no other.
    Errno::result(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, OUT_OF_THE_WAY) })
}
