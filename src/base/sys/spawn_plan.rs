//! The steps of a new process between its fork and its program.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::prctl::{get_thp_disable, set_pdeathsig, set_thp_disable};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{self, Gid, Pid, Uid};

use super::audit_session::{AuditSession, begin_audit_session, stay_in_audit_session};
use super::child::Child;
use super::clone::{
    CLONE_INTO_CGROUP, CLONE_PARENT, CLONE_PIDFD, CLONE_VFORK, CLONE_VM, CloneArgs, clone_copy,
    clone_sharing,
};
use super::descriptors::{close_all_but, move_away, place};
use super::proc_dir::hold_proc;
use super::spawn::{HugePages, OnParentExit, Spawn};

/// The stack of a child that shares its parent's memory. What it calls takes a small part of that; only pages that it
/// touches count.
const SHARING_STACK: usize = 256 * 1024;

/// What a child is until it executes its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChildKind {
    /// A copy of its parent, in its cgroup.
    Copy,
    /// A copy that has still to enter its cgroup.
    PlainCopy,
    /// In its parent's memory, in its cgroup.
    Sharing,
}

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

    /// Starts the child, in this process's memory where that is possible, or as a copy.
    pub(super) fn start(&self) -> io::Result<Child> {
        // A change of user in shared memory would let that user's processes trace both.
        if self.spawn.identity.is_none()
            && (self.spawn.huge_pages == HugePages::Inherited || get_thp_disable() == Ok(false))
            && let Some(child) = self.share_memory()
        {
            return Ok(child);
        }
        self.fork()
    }

    /// Starts the child in this process's memory, with a stack of its own. `None` where that is not possible.
    ///
    /// Fast path: no page table is copied, and no page that either process changes afterwards.
    pub(super) fn share_memory(&self) -> Option<Child> {
        let mut stack = vec![0_u128; SHARING_STACK / size_of::<u128>()];
        let mut pidfd: c_int = -1;
        let args = CloneArgs {
            stack: stack.as_mut_ptr() as u64,
            stack_size: SHARING_STACK as u64,
            ..self.clone_args(CLONE_VM | CLONE_VFORK, &mut pidfd)
        };
        // The child has descriptors and handlers of its own. It runs only `become_program`, which makes system calls and
        // changes no memory but its stack and this thread's `errno`. `stack` and the plan live until it no longer uses
        // them: until then this thread waits.
        let plan = ptr::from_ref(self).cast();
        let pid = clone_sharing(&args, become_sharing_program, plan).ok()?;
        Some(with_pidfd(pid, pidfd))
    }

    pub(super) fn fork(&self) -> io::Result<Child> {
        let mut pidfd: c_int = -1;
        match clone_copy(&self.clone_args(0, &mut pidfd)) {
            Ok(0) => self.become_program(ChildKind::Copy),
            Ok(pid) => Ok(with_pidfd(pid, pidfd)),
            // Older kernels, emulators and some seccomp filters do not support it.
            Err(Errno::ENOSYS | Errno::EINVAL | Errno::E2BIG | Errno::EPERM) => self.plain_fork(),
            Err(errno) => Err(errno.into()),
        }
    }

    fn clone_args(&self, flags: u64, pidfd: &mut c_int) -> CloneArgs {
        let cgroup = self.spawn.cgroup.map(|fd| fd.as_raw_fd());
        CloneArgs {
            flags: flags | CLONE_PIDFD | cgroup.map_or(0, |_| CLONE_INTO_CGROUP),
            pidfd: ptr::from_mut(pidfd) as u64,
            exit_signal: libc::SIGCHLD as u64,
            cgroup: cgroup.map_or(0, |fd| u64::from(fd.unsigned_abs())),
            ..CloneArgs::default()
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
        match clone_copy(&args)? {
            0 => self.become_program(ChildKind::Copy),
            pid => Ok(pid),
        }
    }

    fn plain_fork(&self) -> io::Result<Child> {
        #[expect(unsafe_code, reason = "fork is unsafe in a process with threads")]
        // SAFETY: the child runs only `become_program`, which makes system calls only.
        let forked = unsafe { unistd::fork() }?;
        match forked {
            unistd::ForkResult::Child => self.become_program(ChildKind::PlainCopy),
            unistd::ForkResult::Parent { child } => Child::open(child.as_raw()),
        }
    }

    /// Runs in the child until it executes the program.
    fn become_program(&self, kind: ChildKind) -> ! {
        let report = move_away(self.report).unwrap_or(self.report);
        let (stage, errno) = self.steps(kind);
        let [a, b, c, d] = (errno as i32).to_ne_bytes();
        let bytes = [stage, a, b, c, d];
        #[expect(unsafe_code, reason = "the descriptor is a bare number in the child")]
        // SAFETY: `bytes` lives through the call; a closed descriptor is a harmless error.
        let _ = unsafe { libc::write(report, bytes.as_ptr().cast(), bytes.len()) };
        exit_now(127)
    }

    /// Runs the steps; returns only if one failed, with its number in the report and the error.
    fn steps(&self, kind: ChildKind) -> (u8, Errno) {
        default_signals();
        // Fails only in a process that already leads a session, which is just as good.
        let _ = unistd::setsid();
        umask(Mode::from_bits_truncate(0o022));
        // gatewren disables huge pages, which survives `execve`; the program may want them. It is a property of the
        // memory, which can be the parent's too.
        if kind != ChildKind::Sharing {
            let _ = set_thp_disable(false);
        }
        self.begin_session();
        if let Err(errno) = self.enter_cgroups(kind == ChildKind::PlainCopy) {
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

/// Runs in a child that shares its parent's memory.
extern "C" fn become_sharing_program(plan: *const c_void) -> ! {
    #[expect(unsafe_code, reason = "the child gets one bare pointer")]
    // SAFETY: `share_memory` passes its plan, which lives until the child has executed its program.
    let plan = unsafe { &*plan.cast::<SpawnPlan<'_>>() };
    plan.become_program(ChildKind::Sharing)
}

/// A child that was started with [`CLONE_PIDFD`].
fn with_pidfd(pid: i32, pidfd: c_int) -> Child {
    #[expect(unsafe_code, reason = "the kernel returns a bare number")]
    // SAFETY: the kernel put a new descriptor there, which nothing else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Child::new(pid, pidfd)
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
