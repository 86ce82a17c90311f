//! The steps of a new process between its fork and its program.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::prctl::{set_pdeathsig, set_thp_disable};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{self, Gid, Pid, Uid};

use super::audit_session::{AuditSession, begin_audit_session, stay_in_audit_session};
use super::child::Child;
use super::descriptors::{close_all_but, move_away, place};
use super::proc_dir::hold_proc;
use super::spawn::{OnParentExit, Spawn};

/// `struct clone_args` of clone3(2), up to the cgroup.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

const CLONE_PIDFD: u64 = 0x1000;
const CLONE_PARENT: u64 = 0x8000;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Everything that the child uses, in the form that the kernel takes.
pub(super) struct SpawnPlan<'a> {
    spawn: &'a Spawn<'a>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    groups: Vec<Gid>,
    /// The user id that begins an audit session, in digits.
    login_user: CString,
    parent: Pid,
    report: RawFd,
    /// What the child runs instead of a program.
    run: Option<fn() -> u8>,
}

impl<'a> SpawnPlan<'a> {
    pub(super) fn of(spawn: &'a Spawn<'a>, report: RawFd, run: Option<fn() -> u8>) -> Self {
        let pointers = |strings: &[CString]| {
            let each = strings.iter().map(|s| s.as_ptr());
            each.chain([ptr::null()]).collect()
        };
        let groups = spawn.identity.iter().flat_map(|i| &i.groups);
        Self {
            spawn,
            argv: pointers(&spawn.argv),
            env: pointers(&spawn.env),
            groups: groups.map(|g| Gid::from_raw(*g)).collect(),
            // Digits contain no NUL.
            login_user: CString::new(Uid::current().to_string()).unwrap_or_default(),
            parent: match run {
                Some(_) => unistd::getppid(),
                None => unistd::getpid(),
            },
            report,
            run,
        }
    }

    pub(super) fn fork(&self) -> io::Result<Child> {
        let mut pidfd: c_int = -1;
        let cgroup = self.spawn.cgroup.map(|fd| fd.as_raw_fd());
        let args = CloneArgs {
            flags: CLONE_PIDFD | cgroup.map_or(0, |_| CLONE_INTO_CGROUP),
            pidfd: ptr::from_mut(&mut pidfd) as u64,
            exit_signal: libc::SIGCHLD as u64,
            cgroup: cgroup.map_or(0, |fd| u64::from(fd.unsigned_abs())),
            ..CloneArgs::default()
        };
        match clone3(&args) {
            Ok(0) => self.become_program(false),
            Ok(pid) => {
                #[expect(unsafe_code, reason = "the kernel returns a bare number")]
                // SAFETY: CLONE_PIDFD put a new descriptor there, which nothing else owns.
                let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
                Ok(Child::new(pid, pidfd))
            }
            // Older kernels, emulators and some seccomp filters do not support it.
            Err(Errno::ENOSYS | Errno::EINVAL | Errno::E2BIG | Errno::EPERM) => self.plain_fork(),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The process gets the signal of this one's end as the signal of its own (clone(2), `CLONE_PARENT`).
    pub(super) fn fork_sibling(&self) -> io::Result<i32> {
        let cgroup = self.spawn.cgroup.map(|fd| fd.as_raw_fd());
        let args = CloneArgs {
            flags: CLONE_PARENT | cgroup.map_or(0, |_| CLONE_INTO_CGROUP),
            cgroup: cgroup.map_or(0, |fd| u64::from(fd.unsigned_abs())),
            ..CloneArgs::default()
        };
        match clone3(&args)? {
            0 => self.become_program(false),
            pid => Ok(pid),
        }
    }

    fn plain_fork(&self) -> io::Result<Child> {
        #[expect(unsafe_code, reason = "fork is unsafe in a process with threads")]
        // SAFETY: the child runs only `become_program`, which makes system calls only.
        let forked = unsafe { unistd::fork() }?;
        match forked {
            unistd::ForkResult::Child => self.become_program(true),
            unistd::ForkResult::Parent { child } => Child::open(child.as_raw()),
        }
    }

    /// Runs in the child until it executes the program.
    fn become_program(&self, enter_cgroup: bool) -> ! {
        let report = move_away(self.report).unwrap_or(self.report);
        let (stage, errno) = self.steps(enter_cgroup);
        let [a, b, c, d] = (errno as i32).to_ne_bytes();
        let bytes = [stage, a, b, c, d];
        #[expect(unsafe_code, reason = "the descriptor is a bare number in the child")]
        // SAFETY: `bytes` lives through the call; a closed descriptor is a harmless error.
        let _ = unsafe { libc::write(report, bytes.as_ptr().cast(), bytes.len()) };
        exit_now(127)
    }

    /// Runs the steps; returns only if one failed, with its number in the report and the error.
    fn steps(&self, enter_cgroup: bool) -> (u8, Errno) {
        default_signals();
        // Fails only in a process that already leads a session, which is just as good.
        let _ = unistd::setsid();
        umask(Mode::from_bits_truncate(0o022));
        // gatewren disables huge pages, which survives `execve`; the program may want them.
        let _ = set_thp_disable(false);
        self.begin_session();
        if let Err(errno) = self.enter_cgroups(enter_cgroup) {
            return (1, errno);
        }
        if let Err(errno) = place(&self.spawn.fds) {
            return (2, errno);
        }
        if let Err(errno) = self.become_user() {
            return (3, errno);
        }
        if let Err(errno) = self.enter_directory() {
            return (4, errno);
        }
        if let Err(errno) = self.tie_to_parent() {
            return (5, errno);
        }
        let _ = SigSet::empty().thread_set_mask();
        match self.run {
            Some(run) => run_and_exit(self.spawn.fds.len(), run),
            None => (5, self.execute()),
        }
    }

    /// Runs before the change of user, which would remove the permission for it. If the kernel refuses, the program
    /// stays in its parent's session, as its number shows.
    fn begin_session(&self) {
        if self.spawn.audit_session == AuditSession::Inherited {
            return;
        }
        let _ = begin_audit_session(&self.login_user);
        if self.spawn.audit_session == AuditSession::OwnForGood {
            stay_in_audit_session();
        }
    }

    fn enter_cgroups(&self, unified_too: bool) -> Result<(), Errno> {
        for membership in &self.spawn.memberships {
            unistd::write(membership, b"0")?;
        }
        if let Some(cgroup) = self.spawn.cgroup.filter(|_| unified_too) {
            let procs = openat(cgroup, c"cgroup.procs", OFlag::O_WRONLY, Mode::empty())?;
            unistd::write(&procs, b"0")?;
        }
        Ok(())
    }

    fn become_user(&self) -> Result<(), Errno> {
        let Some(identity) = &self.spawn.identity else {
            return Ok(());
        };
        let (uid, gid) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
        unistd::setgroups(&self.groups)?;
        unistd::setresgid(gid, gid, gid)?;
        unistd::setresuid(uid, uid, uid)
    }

    fn enter_directory(&self) -> Result<(), Errno> {
        let mut outcome = Ok(());
        for directory in &self.spawn.directories {
            outcome = unistd::chdir(directory.as_c_str());
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Runs after the change of user, which would reset it.
    fn tie_to_parent(&self) -> Result<(), Errno> {
        match self.spawn.with_parent {
            OnParentExit::Lives => return Ok(()),
            OnParentExit::Dies => set_pdeathsig(Signal::SIGKILL)?,
        }
        // The parent may have died before the signal was set.
        if unistd::getppid() == self.parent {
            Ok(())
        } else {
            Err(Errno::ESRCH)
        }
    }

    /// Tries the programs like execvp(3): a permission error is kept for the report, but a later program may still
    /// work.
    fn execute(&self) -> Errno {
        let mut outcome = Errno::ENOENT;
        for program in &self.spawn.programs {
            let (argv, env) = (self.argv.as_ptr(), self.env.as_ptr());
            #[expect(unsafe_code, reason = "nix's execve allocates, which a fork must not")]
            // SAFETY: both lists end in a null pointer and point into strings that `self.spawn` owns.
            unsafe {
                libc::execve(program.as_ptr(), argv, env);
            }
            match Errno::last() {
                Errno::ENOENT | Errno::ENOTDIR => {}
                Errno::EACCES => outcome = Errno::EACCES,
                other => return other,
            }
        }
        outcome
    }
}

/// Forks with these arguments; returns 0 in the child.
fn clone3(args: &CloneArgs) -> Result<i32, Errno> {
    let size = size_of::<CloneArgs>();
    #[expect(unsafe_code, reason = "clone3 has no safe wrapper")]
    // SAFETY: without CLONE_VM this is a fork; `args` lives through the call, and the kernel writes only the pidfd that
    // it names. The child runs only `become_program`, which makes system calls only, or is a process of one thread.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, ptr::from_ref(args), size) };
    Errno::result(pid).and_then(|pid| i32::try_from(pid).map_err(|_| Errno::EOVERFLOW))
}

/// Closes everything but the given descriptors and `/proc`, runs `run`, and exits with its result, or with 125 after a
/// panic. Runs in the copy of a process of one thread.
fn run_and_exit(given: usize, run: fn() -> u8) -> ! {
    let proc = hold_proc().map_or(-1, AsRawFd::as_raw_fd);
    close_all_but(c_int::try_from(given).unwrap_or(0), [proc, proc]);
    let code = std::panic::catch_unwind(run).unwrap_or(125);
    exit_now(c_int::from(code))
}

/// Ends this process without the exit handlers of the process that it is a copy of.
pub(super) fn exit_now(code: c_int) -> ! {
    #[expect(unsafe_code, reason = "libc's exit runs handlers")]
    // SAFETY: ends this process and runs nothing in it.
    unsafe {
        libc::_exit(code)
    }
}

/// Resets all signals: ignored signals survive `execve`, and Rust ignores SIGPIPE.
///
/// By the bare system call, because libc rejects the two signals that it reserves, which may be ignored as well. An
/// action of zeros is the default action in every architecture's layout.
fn default_signals() {
    const DEFAULT: [u64; 4] = [0; 4];
    let (action, size) = (DEFAULT.as_ptr(), size_of::<u64>());
    for signal in 1..=64 {
        let none = ptr::null::<u64>();
        #[expect(unsafe_code, reason = "handlers are raw pointers")]
        // SAFETY: the kernel reads `action`, which lives through the call and holds no handler of ours; for signals
        // that cannot be set the call fails.
        unsafe {
            libc::syscall(libc::SYS_rt_sigaction, signal, action, none, size);
        }
    }
}
