//! G10, G13 to G15, G20, W6: open streams, and notifications of changes.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::common::Error;
use crate::common::load::Caller;
use crate::common::machine::{CpuClock, memory_kib, raise_descriptor_limit};
use crate::common::peers::{Ability, Peer, TOUCH};
use crate::common::servers::{Bare, Gatewren};
use crate::common::spread::{Spread, percentile};
use crate::common::subscribers::Subscribers;
use crate::context::{Context, say};
use crate::fan_out::{self, Anchor, Change, FanOut, ROWS, Row};
use crate::figure::{Figure, Findings};

/// The number of streams in the goals.
const MANY: u32 = 1000;

/// The idle period of a server with that many streams: two keepalives of each.
const IDLE: Duration = Duration::from_secs(30);

/// The pause after opening the streams.
const SETTLING: Duration = Duration::from_secs(3);

/// All rounds of one server.
struct Measured {
    name: String,
    one: Vec<FanOut>,
    many: Vec<FanOut>,
}

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    raise_descriptor_limit()?;
    let mut ours = Measured::new("gatewren");
    let peers = cx.peers.iter().filter(|peer| peer.can(Ability::Tell));
    let mut peers: Vec<(&Peer, Measured)> = peers
        .map(|peer| (peer, Measured::new(&peer.name)))
        .collect();
    for _ in cx.rounds() {
        ours.one
            .push(fan_out::measure(&cx.args, row("1 told")?, cx.pinning).await?);
        ours.many
            .push(fan_out::measure(&cx.args, row("1,000 told")?, cx.pinning).await?);
        for (peer, measured) in &mut peers {
            measured.one.push(told_by(cx, peer, 1).await?);
            measured.many.push(told_by(cx, peer, MANY).await?);
        }
    }
    let peers: Vec<Measured> = peers.into_iter().map(|(_, measured)| measured).collect();
    let mut findings = Findings {
        figures: figures(&ours, &peers),
        ..Findings::default()
    };
    findings.figures.push(idle(cx).await?);
    Ok(findings)
}

fn row(name: &str) -> Result<&'static Row, Error> {
    let found = ROWS.iter().find(|row| row.name == name);
    found.ok_or_else(|| format!("no row {name}").into())
}

/// Measures one round of a peer, with plain hyper.
async fn told_by(cx: &Context, peer: &Peer, many: u32) -> Result<FanOut, Error> {
    let server = peer.start(cx.pinning).await?;
    let bare = Bare::start(0, None, cx.pinning)?;
    let pids = (bare.pid(), server.pid());
    let weigh = |pid| memory_kib(pid, "Pss");
    let before = (weigh(pids.0)?, weigh(pids.1)?);
    let mut listeners = Subscribers::peer(&server, many).await?;
    let bare_listeners = Subscribers::bare(&bare.address, many).await?;
    let each = |after: f64, before: f64| (after - before) / f64::from(many);
    let mut measured = FanOut {
        bare_kib: each(weigh(pids.0)?, before.0),
        ours_kib: each(weigh(pids.1)?, before.1),
        ..FanOut::default()
    };
    let mut touch = Caller::open(&server.asked(&TOUCH)).await?;
    let mut anchor = Anchor {
        server: bare,
        listeners: bare_listeners,
    };
    let change = async |_| {
        let at = Instant::now();
        let (called, told) = tokio::join!(touch.once(), listeners.told(many, None));
        called.map_err(|cause| format!("{}: {cause}", peer.name))?;
        Ok((at, told?, listeners.event_bytes))
    };
    let rounds = (cx.args.changes, many);
    measured
        .measure(rounds, server.pid(), &mut anchor, change)
        .await?;
    Ok(measured)
}

impl Measured {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            one: Vec::new(),
            many: Vec::new(),
        }
    }

    /// Returns a figure over the rounds with many subscribers.
    fn of_rounds(&self, figure: fn(&FanOut) -> f64) -> Spread {
        Spread::of(self.many.iter().map(figure))
    }

    /// Returns a figure of each change with many subscribers, divided by that of the anchor's change after it.
    fn by_anchor(&self, figure: fn(&Change) -> f64) -> Spread {
        let pairs = changes(&self.many);
        Spread::of(pairs.map(|(bare, ours)| figure(ours) / figure(bare)))
    }

    fn last_ms(rounds: &[FanOut]) -> Spread {
        Spread::of(changes(rounds).map(|(_, ours)| ours.last_us() / 1e3))
    }

    /// Returns the 99th percentile over all notifications of a single subscriber, in milliseconds.
    fn one_p99(&self) -> f64 {
        let mut all: Vec<f64> = changes(&self.one)
            .map(|(_, ours)| ours.last_us() / 1e3)
            .collect();
        all.sort_by(f64::total_cmp);
        percentile(&all, 99).unwrap_or(f64::INFINITY)
    }
}

fn changes(rounds: &[FanOut]) -> impl Iterator<Item = (&Change, &Change)> {
    let pairs = rounds
        .iter()
        .map(|round| round.bare.iter().zip(&round.ours));
    pairs.flatten()
}

fn figures(ours: &Measured, peers: &[Measured]) -> Vec<Figure> {
    let each = |key: &str, figure: &dyn Fn(&Measured) -> Spread| {
        let others = peers
            .iter()
            .map(|peer| (peer.name.clone(), figure(peer)))
            .collect();
        Figure::of(key, figure(ours)).beside(others)
    };
    let p99 = ours.one_p99();
    let exactly = Spread {
        low: p99,
        median: p99,
        high: p99,
    };
    vec![
        each("stream-memory", &|one| {
            one.of_rounds(|round| round.ours_kib / round.bare_kib)
        }),
        each("stream-kib", &|one| one.of_rounds(|round| round.ours_kib))
            .noted("gatewren's over TLS, the peers' plain"),
        each("told-cpu", &|one| one.by_anchor(|change| change.cpu_us)),
        each("told-last", &|one| one.by_anchor(Change::last_us)),
        each("told-one-ms", &|one| Measured::last_ms(&one.one)).noted(
            "gatewren's from another program's commit, over TLS; the peers' from the call of a tool of theirs",
        ),
        each("told-last-ms", &|one| Measured::last_ms(&one.many)),
        Figure::of("known-p99", exactly)
            .noted("with the notification's way to a subscriber: an upper bound"),
    ]
}

/// Measures the cost of holding idle streams.
async fn idle(cx: &Context) -> Result<Figure, Error> {
    say("now nothing is asked")?;
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    sleep(SETTLING).await;
    let alone = rested(ours.pid()).await?;
    let uri = |_| "gatewren:///public/serverInfo".to_owned();
    let _listeners = Subscribers::ours(&ours, MANY, uri).await?;
    sleep(SETTLING).await;
    let held = rested(ours.pid()).await?;
    let words = format!("the whole front; without a stream it is {alone:.2} ms/s");
    Ok(Figure::of("idle-cpu", Spread::of(std::iter::once(held))).noted(words))
}

/// Returns the milliseconds of CPU a second.
async fn rested(pid: u32) -> Result<f64, Error> {
    let cpu = CpuClock::of(pid)?;
    sleep(IDLE).await;
    Ok(cpu.spent()?.as_secs_f64() * 1e3 / IDLE.as_secs_f64())
}
