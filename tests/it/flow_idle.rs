//! A server that nobody calls sleeps: what is counted is how often, which does not depend on how fast it is.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::support::apart::Apart;
use crate::support::server::{Server, server};

/// How long is counted; whoever polls more often than every few seconds is seen in it.
const WINDOW: Duration = Duration::from_secs(12);

/// So often front and helper together may wake up in it, where some three would do. A poll four times a second is
/// 48, and so is whatever is written without need.
const MOST: u64 = 40;

/// After a start there is much to see, and then to see again: one window of so many must be quiet.
const WINDOWS: usize = 20;

/// How often the threads of the front and the helper have gone to sleep.
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
    let Some(machine) = Apart::new() else { return };
    let containers = machine.home.join("containers");
    fs::create_dir(&containers).unwrap();
    let server = server().lxcpath(&containers).apart(&machine).start();
    let mut counts = Vec::new();
    while counts.len() < WINDOWS {
        let before = sleeps(&server);
        sleep(WINDOW);
        // A thread that has ended takes its own count along.
        let count = sleeps(&server).saturating_sub(before);
        counts.push(count);
        if count <= MOST {
            return;
        }
    }
    panic!("it woke up so often in each {WINDOW:?}: {counts:?}");
}
