//! G11, G12, G17, W7, W8, W12, O1: memory, the owner's page, and the time from the start to the first correct reply.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Error;
use crate::common::load::{Asked, sample};
use crate::common::machine::memory_kib;
use crate::common::servers::Gatewren;
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::{Context, say};
use crate::figure::{Figure, Findings};
use crate::page;
use crate::siege;

/// Starts of a peer.
const STARTS: u32 = 5;

/// Calls that load a server.
const CALLS: f64 = 500_000.0;

/// The same with `--quick`.
const CALLS_QUICK: f64 = 50_000.0;

const CONNECTIONS: u32 = 64;

/// The time limit of the load; a slower server gets fewer calls.
const LOADED_WITHIN: Duration = Duration::from_secs(25);

/// The same with `--quick`.
const LOADED_QUICK: Duration = Duration::from_secs(5);

/// The length of one sample of the load.
const STRETCH: Duration = Duration::from_secs(2);

const KIB_IN_A_MB: f64 = 1e6 / 1024.0;

const WHOAMI: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("whoami"),
    params: r#""name":"whoami","arguments":{}"#,
};

/// The figures of the peers.
#[derive(Default)]
struct Others {
    idle: Vec<(String, Spread)>,
    start: Vec<(String, Spread)>,
    loaded: Vec<(String, Spread)>,
}

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    let others = others(cx).await?;
    let mut findings = Findings {
        figures: page::measure(cx).await?,
        ..Findings::default()
    };
    let (loaded, calls) = {
        let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
        let asked = ours.asked(&WHOAMI);
        load(cx, &asked).await?
    };
    findings.figures.push(
        Figure::of("loaded-memory", loaded)
            .beside(others.loaded)
            .noted(format!("{calls:.0} calls")),
    );
    let Some(file) = &cx.args.footprint else {
        return Err("name with --footprint what that benchmark printed".into());
    };
    let said: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
    let row = said
        .pointer("/rows/0")
        .ok_or("footprint has measured nothing")?;
    let rss = |whose: &str| -> Result<f64, Error> {
        let kib = row.pointer(whose).and_then(Value::as_f64);
        Ok(kib.ok_or("footprint does not say how much memory")? / KIB_IN_A_MB)
    };
    let (front, helper) = (rss("/idle/front/rss")?, rss("/idle/helper/rss")?);
    let start: Spread = serde_json::from_value(row.get("start_ms").cloned().unwrap_or_default())?;
    let once = |value: f64| Spread::of(std::iter::once(value));
    findings.figures.extend([
        Figure::of("idle-memory", once(front)).beside(others.idle),
        Figure::of("both-memory", once(front + helper)),
        Figure::of("start", start)
            .beside(others.start)
            .noted("a second start: the first makes keys"),
        Figure::of("both-start", start).noted("it starts its helper too"),
        siege::measure(cx).await?,
    ]);
    Ok(findings)
}

async fn others(cx: &Context) -> Result<Others, Error> {
    let mut others = Others::default();
    for peer in &cx.peers {
        say(&peer.name)?;
        let (mut took, mut idle) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            let started = peer.start(cx.pinning).await?;
            took.push(started.took.as_secs_f64() * 1e3);
            idle.push(memory_kib(started.pid(), "VmRSS")? / KIB_IN_A_MB);
        }
        let started = peer.start(cx.pinning).await?;
        let question = peer.question(peer.wire());
        let (loaded, _) = load(cx, &started.asked(&question)).await?;
        let name = || peer.name.clone();
        others.start.push((name(), Spread::of(took.into_iter())));
        others.idle.push((name(), Spread::of(idle.into_iter())));
        others.loaded.push((name(), loaded));
    }
    Ok(others)
}

/// Returns the resident memory after many calls, in MB, and the number of calls.
async fn load(cx: &Context, asked: &Asked<'_>) -> Result<(Spread, f64), Error> {
    let (mut calls, began) = (0.0, Instant::now());
    let (wanted, within) = if cx.args.quick {
        (CALLS_QUICK, LOADED_QUICK)
    } else {
        (CALLS, LOADED_WITHIN)
    };
    while calls < wanted && began.elapsed() < within {
        calls += sample(asked, CONNECTIONS, STRETCH).await?.rate * STRETCH.as_secs_f64();
    }
    let mb = memory_kib(asked.pid, "VmRSS")? / KIB_IN_A_MB;
    Ok((Spread::of(std::iter::once(mb)), calls))
}
