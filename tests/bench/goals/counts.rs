//! G1 to G3: instructions and system calls of a call, which do not depend on the load of the machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::Error;
use crate::common::load::{Asked, Caller, Kind};
use crate::common::peers::{Ability, Peer};
use crate::common::servers::{Bare, Directory, Gatewren, Running};
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::{Context, say};
use crate::counter::{Counted, Counter, Grind};
use crate::figure::{Figure, Findings};

/// Calls of one batch; the cheapest of several counts.
const CALLS: u32 = 200;
const BATCHES: u32 = 3;

/// The number of calls under strace.
const TRACED: u32 = 2000;

/// strace needs some time to attach to all threads.
const HOLD: Duration = Duration::from_millis(500);

/// About as long as a reply of `whoami`, and as one of a peer.
const REPLY: usize = 450;
const PEER_REPLY: usize = 200;

const fn whoami(wire: Wire) -> Question<'static> {
    Question {
        wire,
        method: "tools/call",
        name: Some("whoami"),
        params: r#""name":"whoami","arguments":{}"#,
    }
}

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    say("gatewren under callgrind")?;
    let [modern, before] = of_ours(cx).await?;
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    say("hyper under callgrind")?;
    let over_tls = of_bare(cx, Some(&ours)).await?;
    let plain = of_bare(cx, None).await?;
    let mut findings = Findings::default();
    for (key, wire, own) in [
        ("instructions-2026", Wire::Stateless, modern),
        ("instructions-2025", Wire::Stateful, before),
    ] {
        let mut peers = Vec::new();
        let counted = cx.peers.iter().filter(|peer| peer.can(Ability::Count));
        for peer in counted.filter(|peer| peer.speaks(wire)) {
            say(&format!("{} under callgrind", peer.name))?;
            let count = of_peer(cx, peer, wire).await;
            let count = count.map_err(|cause| format!("{}: {cause}", peer.name))?;
            peers.push((peer.name.clone(), once(count / plain)));
        }
        let words = format!(
            "{own:.0} beside hyper's {over_tls:.0} over TLS and {plain:.0} without; of the thread that serves, the audit's writer aside"
        );
        findings.figures.push(
            Figure::of(key, once(own / over_tls))
                .beside(peers)
                .noted(words),
        );
    }
    findings.figures.push(system_calls(cx, &ours).await?);
    Ok(findings)
}

fn once(value: f64) -> Spread {
    Spread::of(std::iter::once(value))
}

/// Counts both wires, in the thread that serves connections, as `tests/bench/budgets/run` does.
async fn of_ours(cx: &Context) -> Result<[f64; 2], Error> {
    let counter = Counter::start(&cx.args.common, cx.pinning)?;
    let mut counts = [0.0; 2];
    for (wire, count) in [Wire::Stateless, Wire::Stateful]
        .into_iter()
        .zip(&mut counts)
    {
        let question = whoami(wire);
        let asked = counter.ours.asked(&question);
        *count = least(&asked, &counter.grind, |counted| counted.front.instructions).await?;
    }
    Ok(counts)
}

async fn of_bare(cx: &Context, tls: Option<&Gatewren>) -> Result<f64, Error> {
    let size = if tls.is_some() { REPLY } else { PEER_REPLY };
    let counts = Directory::new()?;
    let mut command = Grind::command(cx.pinning, &counts);
    command.arg(std::env::current_exe()?);
    let bare = Bare::start_with(command, size, tls)?;
    let question = whoami(Wire::Stateless);
    let asked = Asked {
        address: &bare.address,
        pid: bare.pid(),
        question: &question,
        kind: Kind::Bare(size),
    };
    count(&asked, counts).await
}

async fn of_peer(cx: &Context, peer: &Peer, wire: Wire) -> Result<f64, Error> {
    let counts = Directory::new()?;
    let mut command = Grind::command(cx.pinning, &counts);
    command.args(&peer.command);
    let started = peer.start_with(command).await?;
    let question = peer.question(wire);
    count(&started.asked(&question), counts).await
}

/// Returns the instructions of one call, all threads.
async fn count(asked: &Asked<'_>, counts: Directory) -> Result<f64, Error> {
    let grind = Grind::begin(asked.pid, counts)?;
    let all = |counted: &Counted| counted.front.instructions + counted.behind.instructions;
    least(asked, &grind, all).await
}

/// Returns the instructions of one call, in the cheapest of some batches.
async fn least(asked: &Asked<'_>, grind: &Grind, of: fn(&Counted) -> u64) -> Result<f64, Error> {
    let mut caller = Caller::open(asked).await?;
    let mut least = f64::INFINITY;
    // The first batch runs with cold caches.
    for n in 0..=BATCHES {
        grind.reset()?;
        for _ in 0..CALLS {
            caller.once().await?;
        }
        let count = of(&grind.take()?);
        let each = f64::from(u32::try_from(count / u64::from(CALLS))?);
        if n > 0 {
            least = least.min(each);
        }
    }
    Ok(least)
}

async fn system_calls(cx: &Context, ours: &Gatewren) -> Result<Figure, Error> {
    if Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        return Ok(Figure::without("system-calls", "strace is not installed"));
    }
    say("system calls")?;
    let question = whoami(Wire::Stateless);
    let of_ours = ours.asked(&question);
    let count = traced(&of_ours).await?;
    let bare = Bare::start(REPLY, Some(ours), cx.pinning)?;
    let of_bare = Asked {
        address: &bare.address,
        pid: bare.pid(),
        question: &question,
        kind: Kind::Bare(REPLY),
    };
    let anchor = traced(&of_bare).await?;
    let mut peers = Vec::new();
    for peer in &cx.peers {
        let started = peer.start(cx.pinning).await?;
        let question = peer.question(peer.wire());
        let count = traced(&started.asked(&question)).await?;
        peers.push((peer.name.clone(), once(count)));
    }
    let words = format!("all threads, those of the audit too; hyper over TLS: {anchor:.1}");
    Ok(Figure::of("system-calls", once(count))
        .beside(peers)
        .noted(words))
}

/// Returns the system calls of one call: those of a batch, less those of an equally long idle period.
async fn traced(asked: &Asked<'_>) -> Result<f64, Error> {
    let mut caller = Caller::open(asked).await?;
    let trace = Trace::begin(asked.pid).await?;
    let began = std::time::Instant::now();
    for _ in 0..TRACED {
        caller.once().await?;
    }
    let took = began.elapsed();
    let busy = trace.end().await?;
    if busy < f64::from(TRACED) {
        return Err(format!("strace has seen only {busy} system calls").into());
    }
    let trace = Trace::begin(asked.pid).await?;
    tokio::time::sleep(took).await;
    let idle = trace.end().await?;
    Ok((busy - idle) / f64::from(TRACED))
}

/// strace attached to a process.
struct Trace {
    process: Running,
    directory: Directory,
}

impl Trace {
    async fn begin(pid: u32) -> Result<Self, Error> {
        let directory = Directory::new()?;
        let mut strace = Command::new("strace");
        strace
            .args(["-f", "-c", "-p", &pid.to_string(), "-o"])
            .arg(directory.join("counted"))
            .stderr(Stdio::null());
        let process = Running::start(strace)?;
        tokio::time::sleep(HOLD).await;
        Ok(Self { process, directory })
    }

    async fn end(mut self) -> Result<f64, Error> {
        let file = self.directory.join("counted");
        let pid = self.process.pid().to_string();
        Command::new("kill").args(["-INT", &pid]).status()?;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.process.has_ended()? {
                return sum(&file);
            }
        }
        Err("strace does not end".into())
    }
}

/// Adds up the calls in strace's table, with the columns share, seconds, microseconds, calls, errors, name. Without
/// any call there is no table.
fn sum(file: &Path) -> Result<f64, Error> {
    let text = fs::read_to_string(file)?;
    let total = text.lines().find(|line| line.ends_with(" total"));
    let Some(total) = total else {
        return Ok(0.0);
    };
    let calls = total.split_whitespace().nth(3);
    Ok(calls.ok_or("strace's table is another")?.parse()?)
}
