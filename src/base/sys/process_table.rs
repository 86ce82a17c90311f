//! Reads `/proc`: parents, children, states and start times of processes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, getpid};

use super::proc_dir::{process_numbers, read_proc};

/// The longest line of `/proc/PID/stat`: fifty numbers and a name of 16 characters.
const MAX_STAT_BYTES: u64 = 2048;

/// The most bytes that are read of `/proc/PID/status`; it has a line for each fact, and those of groups can be long.
const MAX_STATUS_BYTES: u64 = 1 << 20;

/// The most bytes that are read of a list of children: 40,000 of them.
const MAX_CHILDREN_BYTES: u64 = 256 * 1024;

/// The parent of all threads of the kernel, in the first pid namespace.
const KERNEL_THREADS: i32 = 2;

/// How much of a process's environment is searched for a variable.
const MAX_ENVIRONMENT_BYTES: u64 = 256 * 1024;

/// The kernel's flag of a process that is ending (`PF_EXITING`); it is set before the process is a zombie.
const IS_ENDING: u64 = 4;

/// The kernel's flag of its own threads (`PF_KTHREAD`); no program can set it.
const IS_KERNEL_THREAD: u64 = 0x0020_0000;

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// Its process id.
    pub pid: i32,
    /// Its parent's process id.
    pub parent: i32,
    /// `R`, `S`, `D`, `Z` and so on, `proc_pid_stat(5)`.
    pub state: char,
    /// Its start time in clock ticks from boot: together with the pid an identity that is never reused.
    pub started: u64,
    /// Whether it is ending or has ended: it no longer runs a program.
    pub is_ending: bool,
}

impl ProcessStat {
    /// Returns whether a signal or a tracer has stopped it.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Returns one process; `None` if there is none with this pid.
pub fn process(pid: i32) -> Option<ProcessStat> {
    let stat = read_proc(&format!("{pid}/stat"), MAX_STAT_BYTES).ok()?;
    parse(pid, &String::from_utf8_lossy(&stat))
}

/// Returns all processes, in the order of their pids.
pub fn all_processes() -> impl Iterator<Item = ProcessStat> {
    let numbers: Vec<i32> = process_numbers().collect();
    numbers.into_iter().filter_map(process)
}

/// Returns every process below `ancestor`, without `ancestor` itself.
pub fn descendants(ancestor: i32) -> Vec<ProcessStat> {
    let all: Vec<ProcessStat> = all_processes().collect();
    descendants_among(&all, &[ancestor])
}

/// Returns those of `processes` that are below one of `ancestors`, without the ancestors.
pub fn descendants_among(processes: &[ProcessStat], ancestors: &[i32]) -> Vec<ProcessStat> {
    let mut families: BTreeMap<i32, Vec<ProcessStat>> = BTreeMap::new();
    for process in processes {
        families.entry(process.parent).or_default().push(*process);
    }
    let mut seen: BTreeSet<i32> = ancestors.iter().copied().collect();
    let (mut found, mut next) = (Vec::new(), ancestors.to_vec());
    while let Some(parent) = next.pop() {
        for child in families.get(&parent).into_iter().flatten() {
            // The table is not read in one instant: reused pids could form a cycle.
            if seen.insert(child.pid) {
                found.push(*child);
                next.push(child.pid);
            }
        }
    }
    found
}

/// Returns the direct children of this process, including zombies.
pub fn children() -> Vec<i32> {
    let me = own_pid();
    if let Some(found) = children_of(me) {
        return found.into_iter().collect();
    }
    let mine = all_processes().filter(|p| p.parent == me);
    mine.map(|p| p.pid).collect()
}

/// Returns the processes below `ancestor` by the kernel's lists of children, which cost a few system calls for each
/// process below and not for each process of the host. A list can miss a child whose sibling has just ended (proc(5)).
pub fn offspring(ancestor: i32) -> Vec<i32> {
    let mut seen = BTreeSet::from([ancestor]);
    let (mut found, mut next) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = next.pop() {
        for child in children_of(parent).unwrap_or_default() {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// Returns the direct children of a process; `None` on a kernel without `CONFIG_PROC_CHILDREN`.
fn children_of(pid: i32) -> Option<BTreeSet<i32>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let mut found = BTreeSet::new();
    for thread in threads.into_iter().flatten().flatten() {
        let name = thread.file_name();
        let path = format!("{pid}/task/{}/children", name.to_string_lossy());
        match read_proc(&path, MAX_CHILDREN_BYTES) {
            Ok(list) => found.extend(
                String::from_utf8_lossy(&list)
                    .split_whitespace()
                    .filter_map(|n| n.parse::<i32>().ok()),
            ),
            Err(e) if e.kind() == io::ErrorKind::NotFound && thread.path().exists() => return None,
            // The thread has ended.
            Err(_) => {}
        }
    }
    Some(found)
}

/// Returns the pids of all processes that can be of a user, in rising order: without the threads of the kernel, which
/// are about half of them.
pub fn user_processes() -> Vec<i32> {
    // In another pid namespace this number is any process.
    let threads = children_of(KERNEL_THREADS).filter(|_| is_kernel_thread(KERNEL_THREADS));
    let threads = threads.unwrap_or_default();
    process_numbers()
        .filter(|pid| !threads.contains(pid))
        .collect()
}

fn is_kernel_thread(pid: i32) -> bool {
    let stat = read_proc(&format!("{pid}/stat"), MAX_STAT_BYTES).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    let flags = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & IS_KERNEL_THREAD != 0)
}

/// Sends SIGKILL (`hard`) or SIGTERM to one process. If it has ended already, this is no error.
pub fn terminate(pid: i32, hard: bool) {
    let signal = if hard {
        Signal::SIGKILL
    } else {
        Signal::SIGTERM
    };
    if pid > 1 {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Sends SIGKILL to the process with this pid and start time, and to no other process with the same pid. If it has
/// ended already, this is no error.
///
/// # Errors
/// `PermissionDenied` when this process may not kill it.
pub fn kill_exactly(process_to_kill: &ProcessStat) -> io::Result<()> {
    let pid = process_to_kill.pid;
    let opened = open_process(pid);
    let is_the_same = || process(pid).is_some_and(|now| now.started == process_to_kill.started);
    match opened {
        // The open pidfd prevents signalling a reused pid: the signal goes to this process or to none.
        Ok(held) if pid > 1 && is_the_same() => match signal_held(&held, Signal::SIGKILL) {
            Err(Errno::ESRCH) | Ok(()) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
        Ok(_) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns a pidfd of a process, which never refers to another one.
pub(super) fn open_process(pid: i32) -> Result<OwnedFd, Errno> {
    #[expect(unsafe_code, reason = "pidfd_open has no safe wrapper")]
    // SAFETY: takes two numbers and returns a new descriptor.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::EBADF)?;
    #[expect(unsafe_code, reason = "the kernel returns a bare number")]
    // SAFETY: the descriptor is new; nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn signal_held(process: &OwnedFd, signal: Signal) -> Result<(), Errno> {
    let (fd, number) = (process.as_raw_fd(), signal as libc::c_int);
    let none = ptr::null::<libc::siginfo_t>();
    #[expect(unsafe_code, reason = "pidfd_send_signal has no safe wrapper")]
    // SAFETY: the descriptor lives through the call; a null `siginfo` is never read.
    let sent = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, number, none, 0) };
    Errno::result(sent).map(drop)
}

/// Returns whether the environment that a process was started with contains this variable, as `NAME=value`. A
/// process can overwrite its own environment.
pub fn has_in_environment(pid: i32, variable: &str) -> bool {
    let read = read_proc(&format!("{pid}/environ"), MAX_ENVIRONMENT_BYTES);
    read.is_ok_and(|bytes| {
        let mut variables = bytes.split(|byte| *byte == 0);
        variables.any(|one| one == variable.as_bytes())
    })
}

/// Returns a process's ids: first the one here, then one for each pid namespace below, down to its own. Empty if it has
/// ended.
pub fn nested_pids(pid: i32) -> Vec<i32> {
    let status = read_proc(&format!("{pid}/status"), MAX_STATUS_BYTES).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let ids = ids.unwrap_or_default().split_whitespace();
    ids.filter_map(|id| id.parse().ok()).collect()
}

/// The name that a process gives itself, at most 15 characters; empty if it has ended.
pub fn process_name(pid: i32) -> String {
    let read = read_proc(&format!("{pid}/comm"), 64).unwrap_or_default();
    String::from_utf8_lossy(&read).trim_end().to_owned()
}

/// The pid of this process.
pub fn own_pid() -> i32 {
    getpid().as_raw()
}

/// The effective user id of this process.
pub fn own_uid() -> u32 {
    Uid::effective().as_raw()
}

/// Returns whether this process is root.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Returns the identity of a process's pid namespace, such as `pid:[4026531836]`.
pub fn pid_namespace(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

/// Parses a line of `stat`. The name in brackets may contain anything, including brackets and spaces: parsing is
/// safe only after the last `)`.
fn parse(pid: i32, stat: &str) -> Option<ProcessStat> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    // The 9th and the 22nd field of the line; the name is the 2nd.
    let flags: u64 = fields.nth(4)?.parse().ok()?;
    let started = fields.nth(12)?.parse().ok()?;
    Some(ProcessStat {
        pid,
        parent,
        state,
        started,
        is_ending: flags & IS_ENDING != 0 || matches!(state, 'Z' | 'X'),
    })
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_hostile_name_does_not_move_the_fields() {
        let line = "7 (a) S 99 (b) R 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2";
        let got = parse(7, line).unwrap();
        assert_eq!((got.parent, got.state, got.started), (3, 'R', 4242));
        assert!(!got.is_ending && !got.is_stopped());
        assert_eq!(parse(7, "7 (x"), None);
        assert_eq!(parse(7, ""), None);
    }

    #[test]
    fn an_ending_process_is_known_before_it_is_a_zombie() {
        let line = |state, flags| {
            format!("7 (x) {state} 3 7 7 0 -1 {flags} 1 0 0 0 0 0 0 0 20 0 1 0 4242")
        };
        assert!(parse(7, &line('S', IS_ENDING)).unwrap().is_ending);
        assert!(parse(7, &line('Z', 0)).unwrap().is_ending);
        assert!(parse(7, &line('t', 0)).unwrap().is_stopped());
    }

    #[test]
    fn a_child_is_found_as_child_and_descendant() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert!(children().contains(&pid));
        assert!(descendants(own_pid()).iter().any(|p| p.pid == pid));
        assert!(offspring(own_pid()).contains(&pid));
        assert_eq!(process(pid).unwrap().parent, own_pid());
        terminate(pid, true);
        child.wait().unwrap();
        assert_eq!(process(pid), None);
    }

    #[test]
    fn threads_of_the_kernel_are_left_out() {
        let users = user_processes();
        assert!(users.contains(&own_pid()) && users.is_sorted());
        assert!(!is_kernel_thread(own_pid()));
        let threads = all_processes().filter(|one| is_kernel_thread(one.pid) && one.parent != 0);
        assert!(threads.map(|one| one.pid).all(|pid| !users.contains(&pid)));
    }

    #[test]
    fn a_process_is_killed_by_number_and_start_alone() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .env("GATEWREN_TEST_CALL", "a1")
            .spawn()
            .unwrap();
        let started = process(i32::try_from(child.id()).unwrap()).unwrap();
        assert_eq!(process_name(started.pid), "sleep");
        // During execve it has no environment for a moment.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !has_in_environment(started.pid, "GATEWREN_TEST_CALL=a1") {
            assert!(Instant::now() < deadline, "it has no such variable");
            sleep(Duration::from_millis(1));
        }
        assert!(!has_in_environment(started.pid, "GATEWREN_TEST_CALL=a"));
        let another = ProcessStat {
            started: started.started + 1,
            ..started
        };
        kill_exactly(&another).unwrap();
        assert!(
            child.try_wait().unwrap().is_none(),
            "it was killed for another process"
        );
        kill_exactly(&started).unwrap();
        assert!(!child.wait().unwrap().success());
        kill_exactly(&started).unwrap();
    }
}
