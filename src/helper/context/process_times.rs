//! The CPU time of all processes, now and at earlier moments.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gatewren_base::sys::EarlierSamples;
use gatewren_base::sys::source::{names, text};

/// The times of all processes at earlier moments. A host has hundreds of processes, of 24 bytes each here.
pub type EarlierTimes = EarlierSamples<Arc<BTreeMap<i32, ProcessTimes>>>;

/// The time a process has used, and when it started, in ticks since boot.
#[derive(Debug, Clone, Copy)]
pub struct ProcessTimes {
    /// User and system time.
    pub used: u64,
    /// When it started.
    pub started: u64,
}

/// Reads the times of all processes below a `/proc`.
pub fn process_times(proc: &Path) -> BTreeMap<i32, ProcessTimes> {
    let pids = names(proc).into_iter();
    let pids = pids.filter_map(|name| name.parse::<i32>().ok());
    let known = pids.filter_map(|pid| {
        let stat = text(proc.join(pid.to_string()).join("stat"))?;
        Some((pid, parse(&stat)?))
    });
    known.collect()
}

/// Parses `/proc/PID/stat`. The name in parentheses may contain anything; the fields are reliable only after its last
/// `)` (proc(5)).
fn parse(stat: &str) -> Option<ProcessTimes> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ProcessTimes {
        // The 14th, 15th and 22nd field of the line: the first one after the name is the third.
        used: number(11)?.saturating_add(number(12)?),
        started: number(19)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_does_not_move_the_fields() {
        let line = "7 (a) S 99 (b) R 3 7 7 0 -1 4194560 1 0 0 0 11 22 0 0 20 0 1 0 4242 1 2";
        let times = parse(line).unwrap();
        assert_eq!((times.used, times.started), (33, 4242));
        assert!(parse("7 (x").is_none() && parse("").is_none());
    }
}
