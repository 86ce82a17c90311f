//! Commits a second and CPU per commit: SQLite alone, the state's writer, another program beside the daemon.

use std::time::{Duration, Instant};

use crate::common::Error;
use crate::common::args::Common;
use crate::common::follower::{Follower, fill};
use crate::common::foreign::{Foreign, tick};
use crate::common::machine::{CpuClock, Pinning};
use crate::common::servers::{Directory, Gatewren};
use crate::documents::Size;
use crate::state::{Actor, Author, Patch, State};

/// The sides commit in turn in this many short stretches, so that all see the disk in the same condition.
const STRETCHES: u32 = 5;

/// Commits of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Written {
    commits: u32,
    time: Duration,
    cpu: Duration,
}

impl Written {
    /// Returns the commits a second.
    pub fn rate(&self) -> f64 {
        f64::from(self.commits) / self.time.as_secs_f64()
    }

    /// Returns the CPU of the committing process, per commit, in microseconds.
    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / f64::from(self.commits)
    }

    fn and(self, more: Self) -> Self {
        Self {
            commits: self.commits + more.commits,
            time: self.time + more.time,
            cpu: self.cpu + more.cpu,
        }
    }
}

/// One round at one size of the document.
#[derive(Debug, Clone, Copy)]
pub struct Commits {
    /// SQLite alone.
    pub bare: Written,
    /// The state's writer, in this process.
    pub writer: Written,
    /// This process, in the role of another program beside the daemon.
    pub foreign: Written,
    /// The daemon's CPU per revision that it read, in microseconds.
    pub follow_us: f64,
    /// From the last commit until the daemon responds with it, in milliseconds.
    pub behind_ms: f64,
}

/// Measures for about `args.seconds` each, in turn.
pub async fn measure(args: &Common, size: Size, pinning: Pinning) -> Result<Commits, Error> {
    let directory = Directory::new()?;
    let bare = Foreign::bare(&directory.join("bare.db"))?;
    let state = State::open(&directory.join("state.db"))?;
    for patch in size.patches() {
        apply(&state, &patch).await?;
    }
    let ours = Gatewren::start(args, pinning)?;
    let mut beside = Beside::new(&ours, size).await?;
    let mut commits = [Written::default(); 3];
    let mut numbers = 1..;
    for _ in 0..STRETCHES {
        let time = args.seconds / STRETCHES;
        let more = [
            write(time, &mut numbers, async |patch| {
                bare.commit(&patch).map(drop)
            })
            .await?,
            write(time, &mut numbers, async |patch| {
                apply(&state, &patch).await
            })
            .await?,
            beside.write(time, &mut numbers).await?,
        ];
        for (all, more) in commits.iter_mut().zip(more) {
            *all = all.and(more);
        }
    }
    let [bare, writer, foreign] = commits;
    Ok(Commits {
        bare,
        writer,
        foreign,
        follow_us: beside.cpu.as_secs_f64() * 1e6 / f64::from(foreign.commits),
        behind_ms: beside.behind.as_secs_f64() * 1e3,
    })
}

/// This process, in the role of another program beside a daemon.
struct Beside<'a> {
    ours: &'a Gatewren,
    foreign: Foreign,
    follower: Follower,
    /// The daemon's CPU for these revisions.
    cpu: Duration,
    /// The longest time that it was behind.
    behind: Duration,
}

impl<'a> Beside<'a> {
    async fn new(ours: &'a Gatewren, size: Size) -> Result<Self, Error> {
        Ok(Self {
            ours,
            foreign: fill(ours, &size.patches()).await?,
            follower: Follower::new(ours).await?,
            cpu: Duration::ZERO,
            behind: Duration::ZERO,
        })
    }

    async fn write(
        &mut self,
        time: Duration,
        numbers: &mut impl Iterator<Item = u64>,
    ) -> Result<Written, Error> {
        let cpu = CpuClock::of(self.ours.pid())?;
        let mut last = 0;
        let written = write(time, numbers, async |patch| {
            last = self.foreign.commit(&patch)?;
            Ok(())
        })
        .await?;
        let ended = Instant::now();
        self.follower.reaches(last).await?;
        self.behind = self.behind.max(ended.elapsed());
        self.cpu += cpu.spent()?;
        Ok(written)
    }
}

async fn write(
    time: Duration,
    numbers: &mut impl Iterator<Item = u64>,
    commit: impl AsyncFnMut(String) -> Result<(), Error>,
) -> Result<Written, Error> {
    let mut commit = commit;
    let own = std::process::id();
    let (cpu, began) = (CpuClock::of(own)?, Instant::now());
    let mut commits = 0;
    while began.elapsed() < time {
        let number = numbers.next().unwrap_or_default();
        commit(tick("tick", number)).await?;
        commits += 1;
    }
    Ok(Written {
        commits,
        time: began.elapsed(),
        cpu: cpu.spent()?,
    })
}

async fn apply(state: &State, patch: &str) -> Result<(), Error> {
    let author = Author::from(Actor::Local("bench".to_owned()));
    let patch = Patch::parse(patch).map_err(|cause| cause.to_string())?;
    state.apply(&author, patch).await?;
    Ok(())
}
