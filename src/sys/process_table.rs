//! What `/proc` says of processes: parents, children, states, and when each began.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, getpid};

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its parent's number.
    pub parent: i32,
    /// `R`, `S`, `D`, `Z` and so on, `proc_pid_stat(5)`.
    pub state: char,
    /// Clock ticks from boot to its start: with the number, a name that is never used twice.
    pub started: u64,
}

/// One process; `None` when there is none of that number.
pub fn process(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// Every process below `ancestor`, itself not among them.
pub fn descendants(ancestor: i32) -> Vec<Process> {
    let mut families: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all() {
        families.entry(process.parent).or_default().push(process);
    }
    let (mut found, mut seen) = (Vec::new(), BTreeSet::from([ancestor]));
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        for child in families.get(&parent).into_iter().flatten() {
            // The table is not read in one instant: numbers used again could make a circle.
            if seen.insert(child.pid) {
                found.push(*child);
                next.push(child.pid);
            }
        }
    }
    found
}

/// The direct children of this process, dead ones that nobody waited for among them.
pub fn children() -> Vec<i32> {
    let me = own_pid();
    let mut found = BTreeSet::new();
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let mut known = true;
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(
                list.split_whitespace()
                    .filter_map(|n| n.parse::<i32>().ok()),
            ),
            Err(e) => known &= e.kind() != io::ErrorKind::NotFound || !thread.path().exists(),
        }
    }
    if known {
        return found.into_iter().collect();
    }
    // A kernel without CONFIG_PROC_CHILDREN.
    let mine = all().filter(|p| p.parent == me);
    mine.map(|p| p.pid).collect()
}

/// SIGKILL (`hard`) or SIGTERM to one process. That it has ended is no error.
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

/// The number of this process.
pub fn own_pid() -> i32 {
    getpid().as_raw()
}

/// The effective user of this process.
pub fn own_uid() -> u32 {
    Uid::effective().as_raw()
}

/// Whether this process is root.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// What names the pid namespace of a process, such as `pid:[4026531836]`.
pub fn pid_namespace(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// The name in brackets may hold anything, brackets and spaces too: only after its last `)` is it safe.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some(Process {
        pid,
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        // The 22nd field of the line; two of the twenty after the name are taken above.
        started: fields.nth(17)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_move_the_fields() {
        let line = "7 (a) S 99 (b) R 3 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 2";
        let got = parse(7, line).unwrap();
        assert_eq!((got.parent, got.state, got.started), (3, 'R', 4242));
        assert_eq!(parse(7, "7 (x"), None);
        assert_eq!(parse(7, ""), None);
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
        assert_eq!(process(pid).unwrap().parent, own_pid());
        terminate(pid, true);
        child.wait().unwrap();
        assert_eq!(process(pid), None);
    }
}
