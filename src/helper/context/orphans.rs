//! Strays: children that the helper did not start. A command leaves them behind by killing its own reaper.
//!
//! The helper is a child subreaper, so an orphan below it becomes its child. On the host that is a process that
//! escaped its call, and it is killed. Two kinds are spared. The first are LXC's own daemons, which lxc-start leaves
//! running on purpose. The second are processes of another pid namespace: a container's init, or a reaper that is
//! still at work. While a command runs in a container of a user, Podman's monitor is spared too.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use gatewren_base::sys::{
    Child, Spawn, SpawnError, children, lock, own_pid, pid_namespace, process, reap, terminate,
};

/// Programs that outlive the operation that started them.
const DAEMONS: &[&str] = &["lxc-start", MONITOR_DAEMON];

/// The daemon that lxc-monitor leaves running.
const MONITOR_DAEMON: &str = "lxc-monitord";

/// Podman's monitor of a command in a container, which detaches itself from Podman, and what it starts afterwards.
const PODMAN_PROGRAMS: &[&str] = &["conmon", "podman"];

/// The children that the helper started; all others are orphans.
#[derive(Debug, Default)]
pub struct Orphans {
    known: Mutex<BTreeSet<i32>>,
    /// How many of them are the Podman of a user, whose monitor is an orphan.
    monitored: AtomicUsize,
}

impl Orphans {
    /// Starts a child, which is no stray while its `TrackedChild` exists. In this folder, children are started only here.
    pub fn start(self: &Arc<Self>, spawn: &Spawn<'_>) -> Result<TrackedChild, SpawnError> {
        spawn.spawn().map(|child| self.track(child))
    }

    /// Takes a child that was started in another way, as [`Self::start`] does.
    pub fn track(self: &Arc<Self>, child: Child) -> TrackedChild {
        self.lock_known().insert(child.pid());
        TrackedChild {
            child,
            orphans: Arc::clone(self),
            leaves_monitor: false,
        }
    }

    /// Kills and reaps all orphans; returns how many were killed.
    pub fn sweep(&self) -> usize {
        let known = self.lock_known().clone();
        let orphans = children().into_iter().filter(|pid| !known.contains(pid));
        let is_monitor = |pid: i32| {
            self.monitored.load(Ordering::Relaxed) > 0
                && match program(pid) {
                    Some(name) => PODMAN_PROGRAMS.contains(&name.as_str()),
                    // It is ending; one that has ended is reaped.
                    None => process(pid).is_some_and(|process| process.state != 'Z'),
                }
        };
        orphans.filter(|pid| !is_monitor(*pid) && end(*pid)).count()
    }

    /// Returns whether LXC's monitor daemon is a child of this helper. One that ran before is not.
    pub fn has_monitor_daemon(&self) -> bool {
        let known = self.lock_known().clone();
        let mut orphans = children().into_iter().filter(|pid| !known.contains(pid));
        orphans.any(|pid| program(pid).is_some_and(|name| name == MONITOR_DAEMON))
    }

    fn lock_known(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        // A set of numbers is consistent even if its last holder panicked.
        lock(&self.known)
    }
}

/// A child that its call waits for. If dropped early, the child becomes a stray and is killed as one.
#[derive(Debug)]
pub struct TrackedChild {
    child: Child,
    orphans: Arc<Orphans>,
    leaves_monitor: bool,
}

impl TrackedChild {
    /// Records that this child is the Podman of a user: its monitor is spared as long as this exists. Teardown of the
    /// call kills a monitor that stays.
    pub fn leaves_monitor(&mut self) {
        if !self.leaves_monitor {
            self.leaves_monitor = true;
            self.orphans.monitored.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Deref for TrackedChild {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl Drop for TrackedChild {
    fn drop(&mut self) {
        self.orphans.lock_known().remove(&self.child.pid());
        if self.leaves_monitor {
            self.orphans.monitored.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn end(pid: i32) -> bool {
    match process(pid) {
        Some(process) if process.state == 'Z' => {
            let _ = reap(pid);
            false
        }
        Some(_) if !is_spared(pid) => {
            // One without a program is ending: its call has just killed it.
            if let Some(program) = program(pid) {
                tracing::warn!(pid, program, "killing a process that outlived its call");
            }
            terminate(pid, true);
            true
        }
        _ => false,
    }
}

fn is_spared(pid: i32) -> bool {
    pid_namespace(pid) != pid_namespace(own_pid()) || is_daemon(pid)
}

fn is_daemon(pid: i32) -> bool {
    program(pid).is_some_and(|name| DAEMONS.contains(&name.as_str()))
}

/// Returns the file name of a process's executable.
fn program(pid: i32) -> Option<String> {
    let file = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = file.file_name()?.to_string_lossy().into_owned();
    // The kernel marks a file that an upgrade replaced.
    Some(name.trim_end_matches(" (deleted)").to_owned())
}
