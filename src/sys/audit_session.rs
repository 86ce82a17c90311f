//! Audit sessions of the kernel: a number that all descendants of a process inherit and cannot change.
//!
//! A process that writes its login user begins a session of its own (`proc_pid_loginuid(5)`). Afterwards only a
//! process with `CAP_AUDIT_CONTROL` in the initial user namespace can begin another one, so the number shows from
//! which call a process is, wherever it moved to.

use std::ffi::CStr;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use nix::unistd::write;

use super::proc_dir::read_proc;

/// The number in `/proc/PID/sessionid` of a process that is in no session.
const NO_SESSION: u32 = u32::MAX;

/// `CAP_AUDIT_CONTROL` of capabilities(7), which libc has no name for.
const CAP_AUDIT_CONTROL: libc::c_ulong = 30;

/// The audit session of a program that is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditSession {
    /// Its parent's.
    #[default]
    Inherited,
    /// One of its own, where the kernel lets us begin one.
    Own,
    /// One of its own, which its descendants cannot leave: the right to do so is taken from its bounding set.
    OwnForGood,
}

/// The audit session that a process is in. `None` when it has ended or is in none, or when this kernel has none.
pub fn audit_session(pid: i32) -> Option<u32> {
    let text = read_proc(&format!("{pid}/sessionid"), 32).ok()?;
    let number = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
    (number != NO_SESSION).then_some(number)
}

/// Begins a session in this process, with the user whose number is `login_user` in digits. Only system calls: safe
/// after a fork.
///
/// # Errors
/// `ENOENT` where the kernel has no audit, `EPERM` where this process must stay in the session that it is in.
pub(super) fn begin_audit_session(login_user: &CStr) -> Result<(), Errno> {
    let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = open(c"/proc/self/loginuid", flags, Mode::empty())?;
    write(&file, login_user.to_bytes()).map(drop)
}

/// Takes from this process and its descendants the right to begin another session. Only system calls: safe after a
/// fork.
pub(super) fn stay_in_audit_session() {
    #[expect(unsafe_code, reason = "nix has no call for the bounding set")]
    // SAFETY: takes two numbers. It fails without CAP_SETPCAP, and then there is no right to take.
    let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_AUDIT_CONTROL, 0, 0, 0) };
}
