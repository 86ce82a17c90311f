//! G16, G18: handshakes, and calls of 64 KiB.

use std::time::{Duration, Instant};

use crate::calls::is_own;
use crate::common::Error;
use crate::common::connection::Address;
use crate::common::floor::FLOOR;
use crate::common::load::{Asked, Caller, Kind, sample};
use crate::common::machine::CpuClock;
use crate::common::pair::{Pair, compare, noise};
use crate::common::peers::echo;
use crate::common::servers::{Bare, Gatewren};
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::Context;
use crate::figure::{Figure, Findings};

const WHOAMI: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("whoami"),
    params: r#""name":"whoami","arguments":{}"#,
};

/// About as long as its reply.
const REPLY: usize = 450;

/// Concurrent handshakes: fewer would leave the server idle.
const CLIENTS: u32 = 4;

/// The length of the echoed text.
const TEXT: usize = 64 * 1024;

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    let mut tls = Vec::new();
    let mut shaken = Vec::new();
    let mut echoes: Vec<(String, Vec<f64>)> = Vec::new();
    for _ in cx.rounds() {
        let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
        let pair = Pair::of_bare(&WHOAMI, REPLY, &ours, cx.pinning)?;
        tls.push(pair.triple(16, cx.args.common.seconds).await?);
        shaken.push(handshakes(cx, &ours).await?);
        for (name, times) in large(cx).await? {
            match echoes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, rounds)) => rounds.push(times),
                None => echoes.push((name, vec![times])),
            }
        }
    }
    let hyper = compare(&tls, |s| s.cpu_us).ratio;
    let words = format!(
        "gatewren serves nothing without TLS; hyper over TLS by hyper without: {:.2} ({:.2}-{:.2})",
        hyper.median, hyper.low, hyper.high
    );
    let ratio = Spread::of(shaken.iter().map(|(ours, bare)| ours / bare));
    let us = Spread::of(shaken.iter().map(|(ours, _)| *ours)).median;
    let handshake = Figure::of("tls-handshake", ratio).noted(format!("{us:.0} us, P-256, TLS 1.3"));
    Ok(Findings {
        figures: vec![
            Figure::without("tls-call", words),
            handshake,
            echoed(echoes),
        ],
        noise: Some(noise(&tls)),
        ..Findings::default()
    })
}

fn echoed(echoes: Vec<(String, Vec<f64>)>) -> Figure {
    let spreads = echoes
        .into_iter()
        .map(|(name, rounds)| (name, Spread::of(rounds.into_iter())));
    let (own, peers): (Vec<_>, Vec<_>) = spreads.partition(|(name, _)| is_own(name));
    let why = "what ships has no tool that echoes; with `--all` its engine is measured with the test fixtures";
    match own.first() {
        Some((name, spread)) => Figure::of("echo-64k", *spread).noted(name.clone()),
        None => Figure::without("echo-64k", why),
    }
    .beside(peers)
}

/// Returns the CPU of a connection with a full handshake and one call, in microseconds: gatewren's, and hyper's
/// around it.
async fn handshakes(cx: &Context, ours: &Gatewren) -> Result<(f64, f64), Error> {
    let bare = Bare::start(REPLY, Some(ours), cx.pinning)?;
    let authority = ours.authority();
    let ours_anew = Address::tls_anew(ours.address.socket(), &authority)?;
    let bare_anew = Address::tls_anew(bare.address.socket(), &authority)?;
    let of_ours = Asked {
        address: &ours_anew,
        ..ours.asked(&WHOAMI)
    };
    let of_bare = Asked {
        address: &bare_anew,
        pid: bare.pid(),
        question: &WHOAMI,
        kind: Kind::Bare(REPLY),
    };
    let time = cx.args.common.seconds;
    let before = anew(&of_bare, time).await?;
    let measured = anew(&of_ours, time).await?;
    let after = anew(&of_bare, time).await?;
    Ok((measured, f64::midpoint(before, after)))
}

/// Connects, calls and disconnects, repeatedly.
async fn anew(asked: &Asked<'_>, time: Duration) -> Result<f64, Error> {
    let cpu = CpuClock::of(asked.pid)?;
    let end = Instant::now() + time;
    let until = async || -> Result<u32, Error> {
        let mut calls = 0;
        while Instant::now() < end {
            Caller::open(asked).await?.once().await?;
            calls += 1;
        }
        Ok(calls)
    };
    let (one, two, three, four) = tokio::try_join!(until(), until(), until(), until())?;
    let calls = f64::from(one + two + three + four);
    Ok(cpu.spent()?.as_secs_f64() * 1e6 / calls)
}

/// Returns the CPU of an echo of 64 KiB, divided by that of the floor.
async fn large(cx: &Context) -> Result<Vec<(String, f64)>, Error> {
    let text = "x".repeat(TEXT);
    let time = cx.args.common.seconds;
    let of_floor = format!(r#""name":"echo","arguments":{{"text":"{text}"}}"#);
    let question = Question {
        params: &of_floor,
        ..echo(Wire::Stateless)
    };
    let bare = Bare::start(0, None, cx.pinning)?;
    let floor = Asked {
        address: &bare.address,
        pid: bare.pid(),
        question: &question,
        kind: Kind::Open(FLOOR),
    };
    let before = sample(&floor, CLIENTS, time).await?.cpu_us;
    let mut measured = Vec::new();
    for peer in cx.peers.iter().filter(|peer| peer.speaks(Wire::Stateless)) {
        let started = peer.start(cx.pinning).await?;
        let params = peer.large(&text);
        let question = Question {
            params: &params,
            ..question
        };
        let asked = started.asked(&question);
        let cpu_us = sample(&asked, CLIENTS, time).await;
        let cpu_us = cpu_us
            .map_err(|cause| format!("{}: {cause}", peer.name))?
            .cpu_us;
        measured.push((peer.name.clone(), cpu_us));
    }
    let anchor = f64::midpoint(before, sample(&floor, CLIENTS, time).await?.cpu_us);
    let by_anchor = measured.into_iter();
    Ok(by_anchor.map(|(name, us)| (name, us / anchor)).collect())
}
