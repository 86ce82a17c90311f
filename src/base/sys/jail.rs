//! A jail for a program of the host that reads files of a container, which may be hostile.
//!
//! The program sees the host's programs, some files of the container, read-only, and an empty `/tmp`. The files are
//! mounts that are cloned in the container's own mount namespace (`open_tree(2)`): a symbolic link in their path,
//! or in them, never leads to a file of the host. The program runs as a separate user, with the groups that may
//! read the files. It has no capability, no network, and its own pid namespace.

use std::convert::Infallible;
use std::ffi::CString;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{
    ForkResult, Gid, Uid, chroot, execve, fchdir, fork, setgroups, setresgid, setresuid,
};

use super::descriptors::pipe;
use super::jail_mounts::{ClonedTree, enter_root, reading_groups};
use super::process_table::process;

/// The first user id of jails; the pid of the container's first process is added. systemd assigns none of these
/// numbers (UIDS-GIDS of systemd, 1879048192 to 2147352575), and a pid is below 2^22.
const FIRST_UID: u32 = 1_879_048_192;

/// The memory limit of the program, in bytes, not counting the files that it maps.
const MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// The largest file that the program can write, in bytes: the size of its `/tmp`.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The limit of CPU time, in seconds; the caller usually kills the program sooner.
const CPU_SECONDS: u64 = 120;

/// The most processes of the jail's user.
const PROCESSES: u64 = 256;

/// What a program in a jail sees of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jail {
    /// The pid of the container's first process on the host.
    pub init: i32,
    /// When that process started, in clock ticks from boot: a pid may be reused.
    pub started: u64,
    /// Absolute paths in the container, none below another. At least one of them must exist.
    pub needs: Vec<PathBuf>,
    /// Further paths, which may be missing.
    pub paths: Vec<PathBuf>,
}

/// A program, as passed to `execve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JailCommand {
    /// Its path on the host.
    pub program: CString,
    /// All arguments, including the program's name.
    pub argv: Vec<CString>,
    /// The whole environment, `NAME=value`.
    pub env: Vec<CString>,
}

/// A container's namespaces and root directory, held open.
struct ContainerHandles {
    own_mounts: File,
    mounts: File,
    root: File,
}

/// Runs a program in a jail and returns its exit code, or 128 plus the signal that killed it. Returns `None` if
/// none of the needed paths exists. The calling process must be single-threaded and root, and must exit afterwards:
/// it is in the jail too.
///
/// # Errors
/// The step that failed, as text. No program has run then.
pub fn run_in_jail(jail: &Jail, command: &JailCommand) -> io::Result<Option<u8>> {
    let doors = step(
        "open the container's namespaces",
        ContainerHandles::open(jail),
    )?;
    let (needed, further) = step("find the container's files", doors.clone_files(jail))?;
    if needed.is_empty() {
        return Ok(None);
    }
    let trees: Vec<ClonedTree> = needed.into_iter().chain(further).collect();
    let apart = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    drop(doors);
    step("create namespaces", unshare(apart))?;
    let (watch, alive) = pipe()?;
    #[expect(unsafe_code, reason = "fork is unsafe in a process with threads")]
    // SAFETY: this process has one thread.
    let forked = step("create a process", unsafe { fork() })?;
    match forked {
        ForkResult::Parent { child } => {
            drop(watch);
            let ended = step("wait for the program", waitpid(child, None))?;
            drop(alive);
            Ok(Some(code_of(ended)))
        }
        ForkResult::Child => {
            drop(alive);
            let failed = become_program(jail, &trees, &watch, command).map(|never| match never {});
            failed.map(|()| None)
        }
    }
}

impl ContainerHandles {
    fn open(jail: &Jail) -> io::Result<Self> {
        let of = |what: &str| File::open(format!("/proc/{}/{what}", jail.init));
        let doors = Self {
            own_mounts: File::open("/proc/self/ns/mnt")?,
            mounts: of("ns/mnt")?,
            root: of("root")?,
        };
        let is_same = process(jail.init).is_some_and(|now| now.started == jail.started);
        let is_the_hosts = same(&doors.root.metadata()?, &fs::metadata("/")?);
        if !is_same || is_the_hosts {
            return Err(io::Error::other(
                "the container is starting or stopping; try again",
            ));
        }
        Ok(doors)
    }

    /// Clones the needed files of the container that exist, and the further ones. The paths are resolved as inside
    /// the container.
    fn clone_files(&self, jail: &Jail) -> io::Result<(Vec<ClonedTree>, Vec<ClonedTree>)> {
        setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
        fchdir(&self.root)?;
        chroot(".")?;
        let trees = |paths: &[PathBuf]| -> io::Result<Vec<ClonedTree>> {
            let found: io::Result<Vec<_>> = paths.iter().map(|path| ClonedTree::of(path)).collect();
            Ok(found?.into_iter().flatten().collect())
        };
        let found = trees(&jail.needs).and_then(|needed| Ok((needed, trees(&jail.paths)?)));
        // Always returns to the own mount namespace; this also undoes the `chroot`.
        setns(&self.own_mounts, CloneFlags::CLONE_NEWNS)?;
        found
    }
}

/// Runs in the child until it executes the program; returns only if a step failed.
fn become_program(
    jail: &Jail,
    trees: &[ClonedTree],
    watch: &OwnedFd,
    command: &JailCommand,
) -> io::Result<Infallible> {
    // In the child, because here `/proc` is that of the new pid namespace.
    step("mount the jail", enter_root(trees))?;
    step("limit the program", limit())?;
    let groups = reading_groups(&[jail.needs.as_slice(), &jail.paths].concat());
    let groups: Vec<Gid> = groups.into_iter().map(Gid::from_raw).collect();
    drop_bounding_set();
    let number = FIRST_UID + jail.init.unsigned_abs();
    step("become another user", change_user(&groups, number))?;
    step("drop capabilities", drop_capabilities())?;
    step("set no_new_privs", set_no_new_privs())?;
    // After the change of user, which would reset it.
    step("follow the parent", set_pdeathsig(Signal::SIGKILL))?;
    let mut parent = [PollFd::new(watch.as_fd(), PollFlags::POLLIN)];
    if step("check the parent", poll(&mut parent, PollTimeout::ZERO))? != 0 {
        return Err(io::Error::other("the helper has ended"));
    }
    step("reset a signal", default_pipe_signal())?;
    step(
        "execute the program",
        execve(&command.program, &command.argv, &command.env),
    )
}

/// Groups first: a process that is no longer root cannot change them.
fn change_user(groups: &[Gid], number: u32) -> Result<(), Errno> {
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    setgroups(groups)?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)
}

fn limit() -> Result<(), Errno> {
    let most = [
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_FSIZE, FILE_BYTES),
        (Resource::RLIMIT_DATA, MEMORY_BYTES),
        (Resource::RLIMIT_CPU, CPU_SECONDS),
        (Resource::RLIMIT_NPROC, PROCESSES),
    ];
    let mut limits = most.into_iter();
    limits.try_for_each(|(resource, most)| setrlimit(resource, most, most))
}

/// Programs executed from here on get no capability (capabilities(7)), not even as root.
fn drop_bounding_set() {
    /// The kernel reads all arguments as `unsigned long`.
    const UNUSED: libc::c_ulong = 0;
    /// More than exist; 41 in Linux 6.18.
    const CAPABILITIES: libc::c_ulong = 64;
    for capability in 0..CAPABILITIES {
        #[expect(unsafe_code, reason = "this prctl has no safe wrapper")]
        // SAFETY: takes numbers; a number that is no capability is a harmless error.
        unsafe {
            libc::prctl(libc::PR_CAPBSET_DROP, capability, UNUSED, UNUSED, UNUSED);
        }
    }
}

fn drop_capabilities() -> Result<(), Errno> {
    /// `_LINUX_CAPABILITY_VERSION_3`, and the calling thread.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    /// Effective, permitted and inheritable, twice 32 of them each.
    const NONE: [u32; 6] = [0; 6];
    let (mut header, none) = (HEADER, NONE);
    #[expect(unsafe_code, reason = "capset has no safe wrapper")]
    // SAFETY: both arrays have the layout of capset(2) and live through the call.
    let dropped = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), none.as_ptr()) };
    Errno::result(dropped).map(drop)
}

/// Rust ignores SIGPIPE, which would survive `execve`.
fn default_pipe_signal() -> Result<(), Errno> {
    #[expect(unsafe_code, reason = "handlers are raw pointers")]
    // SAFETY: the default action is no handler of ours.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }.map(drop)
}

fn code_of(ended: WaitStatus) -> u8 {
    match ended {
        WaitStatus::Exited(_, code) => u8::try_from(code).unwrap_or(1),
        WaitStatus::Signaled(_, signal, _) => {
            u8::try_from(signal as i32).map_or(u8::MAX, |number| number.saturating_add(128))
        }
        _ => 1,
    }
}

fn same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Adds the failed step to an error.
fn step<T, E: Into<io::Error>>(what: &str, outcome: Result<T, E>) -> io::Result<T> {
    outcome.map_err(|cause| {
        let cause = cause.into();
        io::Error::new(cause.kind(), format!("{what}: {cause}"))
    })
}
