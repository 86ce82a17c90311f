//! Children that are ours without our having started them: what a command left behind by killing its own reaper.
//!
//! The helper is a child subreaper, so an orphan below it becomes its child. On the host that is a process
//! that escaped its call, and it is killed. Two kinds are spared: LXC's own daemons, which lxc-start leaves
//! running on purpose, and processes of another pid namespace, which are a container's init or a reaper
//! that is still at work.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys::{
    Child, Spawn, SpawnError, children, own_pid, pid_namespace, process, reap, terminate,
};

/// Programs that outlive the operation that started them.
const DAEMONS: &[&str] = &["lxc-start", MONITOR_DAEMON];

/// What lxc-monitor leaves running.
const MONITOR_DAEMON: &str = "lxc-monitord";

/// Who among our children was started by us.
#[derive(Debug, Default)]
pub struct Strays {
    known: Mutex<BTreeSet<i32>>,
}

impl Strays {
    /// Starts a child that is no stray as long as somebody holds it. The only way in this room to start one.
    pub fn start(self: &Arc<Self>, spawn: &Spawn<'_>) -> Result<Kept, SpawnError> {
        let child = spawn.spawn()?;
        self.known().insert(child.pid());
        Ok(Kept {
            child,
            strays: Arc::clone(self),
        })
    }

    /// Kills and reaps every stray; returns how many were killed.
    pub fn sweep(&self) -> usize {
        let known = self.known().clone();
        let strays = children().into_iter().filter(|pid| !known.contains(pid));
        strays.filter(|pid| end(*pid)).count()
    }

    /// Whether LXC's monitor daemon is our child: one that was there before us is not.
    pub fn has_monitor_daemon(&self) -> bool {
        let known = self.known().clone();
        let mut strays = children().into_iter().filter(|pid| !known.contains(pid));
        strays.any(|pid| program(pid).is_some_and(|name| name == MONITOR_DAEMON))
    }

    fn known(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        // A set of numbers is whole whatever happened to its last holder.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A child that its call waits for; one that is dropped before its end becomes a stray and is killed as such.
#[derive(Debug)]
pub struct Kept {
    child: Child,
    strays: Arc<Strays>,
}

impl Deref for Kept {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.strays.known().remove(&self.child.pid());
    }
}

fn end(pid: i32) -> bool {
    match process(pid) {
        Some(process) if process.state == 'Z' => {
            let _ = reap(pid);
            false
        }
        Some(_) if !is_spared(pid) => {
            tracing::warn!(pid, "a process that outlived its call is killed");
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

/// The name of the file that a process executes.
fn program(pid: i32) -> Option<String> {
    let file = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = file.file_name()?.to_string_lossy().into_owned();
    // After an upgrade the old file is marked so.
    Some(name.trim_end_matches(" (deleted)").to_owned())
}
