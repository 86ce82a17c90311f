//! The context of every part, and its report about the machine.

use std::fs;
use std::io::{Write as _, stderr};
use std::time::Instant;

use crate::args::Args;
use crate::common::Error;
use crate::common::machine::{Machine, Pinning, load};
use crate::common::peers::Peer;
use crate::figure::{Findings, Found};

/// The context of every part.
pub struct Context {
    /// The command line.
    pub args: Args,
    /// Other servers.
    pub peers: Vec<Peer>,
    /// The assignment of cores.
    pub pinning: Pinning,
    /// The state of the machine before.
    machine: Machine,
    began: Instant,
    spent: Spent,
}

impl Context {
    /// Reads the machine's properties and takes its cores.
    pub fn new(args: Args) -> Result<Self, Error> {
        let listed = args.peers.as_deref().map(Peer::listed).transpose()?;
        Ok(Self {
            peers: listed.unwrap_or_default(),
            machine: Machine::look(),
            pinning: Pinning::begin(),
            began: Instant::now(),
            spent: Spent::now()?,
            args,
        })
    }

    /// Returns the rounds, and prints the number of each.
    pub fn rounds(&self) -> impl Iterator<Item = u32> {
        let of = self.args.common.rounds;
        (1..=of).inspect(move |round| {
            // The progress is not essential.
            let _ = writeln!(stderr(), "  round {round} of {of}, load {}", load());
        })
    }

    /// Combines the findings of a part with the context.
    pub fn found(self, part: String, findings: Findings) -> Result<Found, Error> {
        let took = self.began.elapsed().as_secs_f64();
        Ok(Found {
            part,
            others: self.spent.by_others(took)?,
            machine: self.machine,
            pinning: self.pinning.words().to_owned(),
            load_after: load(),
            noise: findings.noise,
            rounds: self.args.common.rounds,
            seconds: self.args.common.seconds.as_secs_f64(),
            took,
            figures: findings.figures,
            curves: findings.curves,
        })
    }
}

/// Prints the progress of a part.
pub fn say(words: &str) -> Result<(), Error> {
    writeln!(stderr(), "  {words}, load {}", load())?;
    Ok(())
}

/// CPU time in the kernel's clock ticks, a hundred a second.
struct Spent {
    /// Of all processes.
    machine: f64,
    /// Of this process and its waited-for children.
    ours: f64,
}

const TICKS_A_SECOND: f64 = 100.0;

impl Spent {
    fn now() -> Result<Self, Error> {
        // user nice system idle iowait irq softirq steal (proc_stat); stolen time is used by others too.
        let all = fs::read_to_string("/proc/stat")?;
        let first = all.lines().next().unwrap_or_default();
        let busy = [1, 2, 3, 6, 7, 8].map(|column| field(first, column));
        let own = fs::read_to_string("/proc/self/stat")?;
        let behind_name = own.rsplit(") ").next().unwrap_or_default();
        let ours = [11, 12, 13, 14].map(|column| field(behind_name, column));
        Ok(Self {
            machine: busy.iter().sum(),
            ours: ours.iter().sum(),
        })
    }

    fn by_others(&self, seconds: f64) -> Result<f64, Error> {
        let now = Self::now()?;
        let others = (now.machine - self.machine) - (now.ours - self.ours);
        Ok((others / TICKS_A_SECOND / seconds).max(0.0))
    }
}

fn field(line: &str, column: usize) -> f64 {
    let word = line.split_whitespace().nth(column);
    word.and_then(|word| word.parse().ok()).unwrap_or_default()
}
