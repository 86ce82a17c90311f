//! The cost of a server: the memory and the CPU time of its processes.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::common::Error;
use crate::common::machine::{memory_kib, tree};

/// The interval of reading CPU time: a thread that exits is counted up to its last reading.
const READ_EVERY: Duration = Duration::from_millis(500);

/// Memory in KiB.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub struct Memory {
    /// The resident size.
    pub rss: f64,
    /// The resident size with shared pages counted proportionally.
    pub pss: f64,
}

/// The memory of a server's processes.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub struct Held {
    /// The process that was started.
    pub front: Memory,
    /// Its child processes of the same program.
    pub helper: Memory,
}

impl Held {
    /// Returns the current memory of a process and its descendants.
    pub fn now(pid: u32) -> Result<Self, Error> {
        let mut held = Self::default();
        let program = program(pid);
        for process in tree(pid) {
            let of = if process == pid {
                &mut held.front
            } else if program.is_some() && self::program(process) == program {
                &mut held.helper
            } else {
                // LXC's monitor is not counted.
                continue;
            };
            of.rss += memory_kib(process, "VmRSS")?;
            of.pss += memory_kib(process, "Pss")?;
        }
        Ok(held)
    }
}

/// Returns the share of one core that each server uses with all its child processes, over this time.
pub async fn cpu_shares(pids: &[u32], time: Duration) -> Vec<f64> {
    let mut counters: Vec<Counter> = pids.iter().map(|pid| Counter::new(*pid)).collect();
    let began = Instant::now();
    while began.elapsed() < time {
        sleep(READ_EVERY.min(time.saturating_sub(began.elapsed()))).await;
        counters.iter_mut().for_each(Counter::read);
    }
    let elapsed = began.elapsed().as_nanos();
    let share = |counter: &Counter| nanos(counter.used) / nanos(elapsed);
    counters.iter().map(share).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an hour has fewer nanoseconds than a float has digits"
)]
fn nanos(of: u128) -> f64 {
    of as f64
}

/// Adds up the CPU time of a server's threads.
struct Counter {
    pid: u32,
    /// Nanoseconds on a core, by process and thread.
    seen: HashMap<PathBuf, u128>,
    used: u128,
}

impl Counter {
    fn new(pid: u32) -> Self {
        let seen = HashMap::new();
        let mut counter = Self { pid, seen, used: 0 };
        counter.read();
        counter.used = 0;
        counter
    }

    fn read(&mut self) {
        for process in tree(self.pid) {
            let threads = fs::read_dir(format!("/proc/{process}/task"));
            for thread in threads.into_iter().flatten().flatten() {
                let path = thread.path();
                let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
                let on_cpu = text.split(' ').next().and_then(|word| word.parse().ok());
                let Some(on_cpu) = on_cpu else { continue };
                let before = self.seen.insert(path, on_cpu).unwrap_or_default();
                self.used += on_cpu.saturating_sub(before);
            }
        }
    }
}

fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}
