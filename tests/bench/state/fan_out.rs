//! From a commit to the subscribers: the delay and cost of each notification, and the memory of a subscriber.

use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until};

use crate::args::Args;
use crate::common::Error;
use crate::common::follower::fill;
use crate::common::foreign::tick;
use crate::common::machine::{CpuClock, Pinning, memory_kib};
use crate::common::servers::{Bare, Gatewren};
use crate::common::subscribers::Subscribers;
use crate::documents::{SIZES, Size};

/// A change is sent at once if the last one on the same URI was sent at least half a second before: this is longer.
const QUIET: Duration = Duration::from_millis(520);

/// The delay between gatewren's change and the anchor's.
const APART: Duration = Duration::from_millis(250);

/// After the last notification, the server may still be finishing its work.
const REST: Duration = Duration::from_millis(20);

/// The memory of fewer subscribers is less than the other allocations of a process.
const WEIGHABLE: u32 = 100;

/// The subscribers of a row.
#[derive(Debug)]
pub struct Row {
    /// Its name in the table.
    pub name: &'static str,
    /// The number of subscribers.
    pub subscribers: u32,
    /// Whether each has a separate URI, so that a change notifies only one.
    pub apart: bool,
    /// The other content of the document.
    pub document: Size,
}

const SMALL: Size = SIZES[0];
const LARGE: Size = SIZES[2];

/// The rows of the table.
pub const ROWS: [Row; 5] = [
    row("1 told", 1, false, SMALL),
    row("100 told", 100, false, SMALL),
    row("1,000 told", 1000, false, SMALL),
    row("1 of 1,000 told", 1000, true, SMALL),
    row("100 told, document of 10 MB", 100, false, LARGE),
];

/// Returns a row for the tables.
pub const fn row(name: &'static str, subscribers: u32, apart: bool, document: Size) -> Row {
    Row {
        name,
        subscribers,
        apart,
        document,
    }
}

/// One change.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The delay of each notification, in microseconds, the shortest first.
    pub told_us: Vec<f64>,
    /// The server's CPU per notification, in microseconds.
    pub cpu_us: f64,
}

impl Change {
    /// Returns the delay of the last notification, in microseconds.
    pub fn last_us(&self) -> f64 {
        self.told_us.last().copied().unwrap_or(f64::NAN)
    }
}

/// One round of a row.
#[derive(Debug, Clone, Default)]
pub struct FanOut {
    /// The anchor's changes.
    pub bare: Vec<Change>,
    /// gatewren's changes.
    pub ours: Vec<Change>,
    /// The anchor's memory per subscriber, in KiB; NaN with too few subscribers.
    pub bare_kib: f64,
    /// gatewren's memory per subscriber, in KiB.
    pub ours_kib: f64,
}

/// The anchor and its subscribers.
pub struct Anchor {
    /// The server.
    pub server: Bare,
    /// The subscribers.
    pub listeners: Subscribers,
}

impl FanOut {
    /// Measures this number of changes with this number of subscribers, and the anchor's events of the same size,
    /// each a little later. `change` makes the n-th; it returns the time of the change, the time of each
    /// notification, and their length.
    pub async fn measure(
        &mut self,
        (changes, many): (u32, u32),
        pid: u32,
        anchor: &mut Anchor,
        mut change: impl AsyncFnMut(u32) -> Result<(Instant, Vec<Instant>, usize), Error>,
    ) -> Result<(), Error> {
        for n in 0..=changes {
            let cpu = Cpu::of(pid)?;
            let (at, told, bytes) = change(n).await?;
            let ended = tokio::time::Instant::now();
            let server = cpu.spent_on(at, &told).await?;

            sleep_until(ended + APART).await;
            let cpu = Cpu::of(anchor.server.pid())?;
            anchor.server.tell(bytes, many)?;
            let at = Instant::now();
            let told = anchor.listeners.told(many, None).await?;
            let bare = cpu.spent_on(at, &told).await?;
            // The first change of each runs with cold caches.
            if n > 0 {
                self.ours.push(server);
                self.bare.push(bare);
            }
            sleep_until(ended + QUIET).await;
        }
        Ok(())
    }
}

/// Measures one round of a row.
pub async fn measure(args: &Args, row: &Row, pinning: Pinning) -> Result<FanOut, Error> {
    let ours = Gatewren::start(&args.common, pinning)?;
    let bare = Bare::start(0, Some(&ours), pinning)?;
    let writer = fill(&ours, &row.document.patches()).await?;

    let before = [
        memory_kib(bare.pid(), "Pss")?,
        memory_kib(ours.pid(), "Pss")?,
    ];
    let mut listeners = Subscribers::ours(&ours, row.subscribers, |n| {
        format!("gatewren:///public/bench/{}", row.key(n))
    })
    .await?;
    let bare_listeners = Subscribers::bare(&bare.address, row.subscribers).await?;
    let after = [
        memory_kib(bare.pid(), "Pss")?,
        memory_kib(ours.pid(), "Pss")?,
    ];
    let each = |n: usize| {
        let sides = after.get(n).zip(before.get(n));
        let grown = sides.filter(|_| row.subscribers >= WEIGHABLE);
        grown.map_or(f64::NAN, |(after, before)| {
            (after - before) / f64::from(row.subscribers)
        })
    };
    let mut measured = FanOut {
        bare_kib: each(0),
        ours_kib: each(1),
        ..FanOut::default()
    };
    let mut anchor = Anchor {
        server: bare,
        listeners: bare_listeners,
    };
    let change = async |n: u32| {
        let revision = writer.commit(&tick(&row.key(n % row.subscribers), u64::from(n) + 1))?;
        let at = Instant::now();
        let told = listeners.told(row.told(), Some(revision)).await?;
        Ok((at, told, listeners.event_bytes))
    };
    let rounds = (args.changes, row.told());
    measured
        .measure(rounds, ours.pid(), &mut anchor, change)
        .await?;
    Ok(measured)
}

impl Row {
    /// Returns the number of notifications of a change.
    fn told(&self) -> u32 {
        if self.apart { 1 } else { self.subscribers }
    }

    /// Returns the key below `/public/bench` that the n-th subscriber watches.
    fn key(&self, n: u32) -> String {
        if self.apart {
            format!("tick-{n}")
        } else {
            "tick".to_owned()
        }
    }
}

/// A server's CPU time from now on.
struct Cpu(CpuClock);

impl Cpu {
    /// Starts measuring this process.
    fn of(pid: u32) -> Result<Self, Error> {
        Ok(Self(CpuClock::of(pid)?))
    }

    /// Returns the cost of a change that was made at `at`.
    async fn spent_on(self, at: Instant, told: &[Instant]) -> Result<Change, Error> {
        sleep(REST).await;
        let spent = self.0.spent()?;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let mut told_us: Vec<f64> = told
            .iter()
            .map(|told| us(told.saturating_duration_since(at)))
            .collect();
        told_us.sort_by(f64::total_cmp);
        let many = f64::from(u32::try_from(told.len())?);
        let cpu_us = us(spent) / many;
        Ok(Change { told_us, cpu_us })
    }
}
