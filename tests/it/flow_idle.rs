//! An idle server sleeps: the test counts its wakeups, which do not depend on the machine's speed.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::namespace::NetworkNamespace;
use crate::support::server::{Server, server};

/// The time window; any poll more often than every few seconds shows in it.
const WINDOW: Duration = Duration::from_secs(12);

/// The most wakeups of front and helper in the window; about three would do. Polling four times a second makes 48,
/// and so do needless writes.
const MOST: u64 = 40;

/// After a start there are many changes, and a second look at each: one of so many windows must be quiet.
const WINDOWS: usize = 20;

/// Returns how often the threads of the front and the helper have gone to sleep.
fn sleeps(server: &Server) -> u64 {
    let processes = [vec![server.pid()], server.children()].concat();
    let threads = processes
        .iter()
        .filter_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).ok())
        .flat_map(Iterator::flatten);
    let statuses = threads.map(|thread| fs::read_to_string(thread.path().join("status")));
    let counted = |status: String| {
        let lines = status.lines();
        let mut found = lines.filter_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        found.next()?.trim().parse::<u64>().ok()
    };
    statuses.flatten().filter_map(counted).sum()
}

#[test]
#[ignore = "long: idle windows of 12 seconds"]
fn who_has_nothing_to_do_sleeps() {
    let Some(machine) = NetworkNamespace::new() else {
        return;
    };
    let containers = machine.home.join("containers");
    fs::create_dir(&containers).unwrap();
    let server = server().lxcpath(&containers).in_namespace(&machine).start();
    let mut counts = Vec::new();
    while counts.len() < WINDOWS {
        let before = sleeps(&server);
        sleep(WINDOW);
        // The count of a thread that exits is lost.
        let count = sleeps(&server).saturating_sub(before);
        counts.push(count);
        if count <= MOST {
            return;
        }
    }
    panic!("it woke up so often in each {WINDOW:?}: {counts:?}");
}
