//! Audit sessions of the kernel: a number that all descendants of a process inherit and cannot change.
//!
//! A process that writes its login user begins a new session (`proc_pid_loginuid(5)`). Afterwards only a process
//! with `CAP_AUDIT_CONTROL` in the initial user namespace can begin another one. The number therefore identifies
//! the call that a process belongs to, wherever the process has moved to.

use std::ffi::CStr;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::libc;
use nix::sys::stat::Mode;
use nix::unistd::write;

use super::proc_dir::read_beginning;
use super::process_table::user_processes;

/// The value of `/proc/PID/sessionid` for a process that is in no session.
const NO_SESSION: u32 = u32::MAX;

/// More bytes than the largest number has.
const SESSION_BYTES: usize = 16;

/// `CAP_AUDIT_CONTROL` of capabilities(7), which libc has no constant for.
const CAP_AUDIT_CONTROL: libc::c_ulong = 30;

/// The audit session of a new program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AuditSession {
    /// The parent's session.
    #[default]
    Inherited,
    /// A new session, where the kernel permits one.
    Own,
    /// A new session that its descendants cannot leave: the capability to do so is removed from the bounding set.
    OwnForGood,
}

/// Returns the audit session of a process. `None` if it has ended, is in none, or the kernel has no audit support.
pub fn audit_session(pid: i32) -> Option<u32> {
    read_session(pid).ok().flatten()
}

/// Returns whether no process is in a session but `known`. A process that ends meanwhile may have started another one:
/// then it is `false`, as it is where a process cannot be read.
pub fn has_only(session: u32, known: &[i32]) -> bool {
    has_only_among(&user_processes(), session, known)
}

fn has_only_among(processes: &[i32], session: u32, known: &[i32]) -> bool {
    processes
        .iter()
        .filter(|pid| !known.contains(pid))
        .all(|pid| read_session(*pid).is_ok_and(|other| other != Some(session)))
}

fn read_session(pid: i32) -> io::Result<Option<u32>> {
    let mut buffer = [0; SESSION_BYTES];
    let text = read_beginning(&format!("{pid}/sessionid"), &mut buffer)?;
    let text = str::from_utf8(text).map_err(io::Error::other)?;
    let number: u32 = text.trim().parse().map_err(io::Error::other)?;
    Ok((number != NO_SESSION).then_some(number))
}

/// Begins a session in this process, with `login_user`, a user id in decimal digits. Makes only system calls: safe
/// after a fork.
///
/// # Errors
/// `ENOENT` where the kernel has no audit support, `EPERM` where this process must stay in its session.
pub(super) fn begin_audit_session(login_user: &CStr) -> Result<(), Errno> {
    let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = open(c"/proc/self/loginuid", flags, Mode::empty())?;
    write(&file, login_user.to_bytes()).map(drop)
}

/// Removes the capability to begin another session from this process and its descendants. Makes only system calls:
/// safe after a fork.
pub(super) fn stay_in_audit_session() {
    #[expect(unsafe_code, reason = "nix has no call for the bounding set")]
    // SAFETY: takes two numbers. Without CAP_SETPCAP it fails, and then there is no capability to remove.
    let _ = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_AUDIT_CONTROL, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::super::process_table::own_pid;
    use super::super::spawn::Spawn;
    use super::*;

    #[test]
    fn a_session_has_only_what_is_known_when_nothing_else_is_in_it() {
        let spawn = Spawn {
            programs: vec![c"/bin/sleep".to_owned()],
            argv: vec![c"sleep".to_owned(), c"600".to_owned()],
            audit_session: AuditSession::Own,
            ..Spawn::default()
        };
        let child = spawn.spawn().unwrap();
        let both = [own_pid(), child.pid()];
        // Without audit in the kernel, no process is in any session.
        let session = audit_session(child.pid());
        if let Some(session) = session {
            assert!(!has_only(session, &[]));
            assert!(!has_only_among(&both, session, &[]));
            assert!(has_only_among(&both, session, &[child.pid()]));
        }
        child.kill();
        child.wait_blocking().unwrap();
        let session = session.unwrap_or(1);
        assert!(has_only_among(&both[..1], session, &[]));
        // One that has ended may have started another one.
        assert!(!has_only_among(&both, session, &[]));
    }
}
