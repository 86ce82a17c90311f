//! G4 to G7, G19, W1: small calls of gatewren and of the peers, each between two samples of hyper.

use std::time::Duration;

use crate::common::Error;
use crate::common::load::{Asked, Kind, Sample, sample};
use crate::common::pair::{Compared, Pair, Triple, compare, noise};
use crate::common::peers::{Started, echo};
use crate::common::servers::{Bare, Gatewren};
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::Context;
use crate::figure::{Figure, Findings};

const CONNECTIONS: [u32; 3] = [1, 16, 64];

/// About as long as a peer's reply.
const PEER_REPLY: usize = 200;

const fn whoami(wire: Wire) -> Question<'static> {
    Question {
        wire,
        method: "tools/call",
        name: Some("whoami"),
        params: r#""name":"whoami","arguments":{}"#,
    }
}

const READ: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "resources/read",
    name: Some("gatewren:///public/serverInfo"),
    params: r#""uri":"gatewren:///public/serverInfo""#,
};

const LIST: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/list",
    name: None,
    params: "",
};

/// One wire at one number of connections; one triple per round.
struct Cell {
    wire: Wire,
    connections: u32,
    ours: Vec<Triple>,
    peers: Vec<(String, Vec<Triple>)>,
}

/// Measures all of it.
pub async fn measure(cx: &Context) -> Result<Findings, Error> {
    let mut cells = Vec::new();
    for wire in [Wire::Stateless, Wire::Stateful] {
        cells.extend(CONNECTIONS.map(|connections| Cell::new(cx, wire, connections)));
    }
    let [mut list, mut read] = [Vec::new(), Vec::new()];
    for _ in cx.rounds() {
        let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
        let mut peers = Vec::new();
        for peer in &cx.peers {
            peers.push(peer.start(cx.pinning).await?);
        }
        let plain = Bare::start(PEER_REPLY, None, cx.pinning)?;
        for cell in &mut cells {
            cell.round(cx, &ours, &peers, &plain).await?;
        }
        for (question, triples) in [(&LIST, &mut list), (&READ, &mut read)] {
            let pair = Pair::ours(question, &ours, cx.pinning).await?;
            triples.push(pair.triple(16, cx.args.common.seconds).await?);
        }
    }
    let mut findings = Findings::default();
    for cell in &cells {
        findings.figures.extend(cell.figures());
    }
    findings.figures.push(listed(&list));
    let call = cells.iter().find(|cell| cell.connections == 16);
    findings
        .figures
        .extend(call.map(|call| read_by_call(&read, &call.ours)));
    findings.noise = Some(Spread::of(
        cells.iter().map(|cell| noise(&cell.ours).median),
    ));
    Ok(findings)
}

impl Cell {
    fn new(cx: &Context, wire: Wire, connections: u32) -> Self {
        let peers = cx.peers.iter().filter(|peer| peer.speaks(wire));
        Self {
            wire,
            connections,
            ours: Vec::new(),
            peers: peers.map(|peer| (peer.name.clone(), Vec::new())).collect(),
        }
    }

    /// Measures hyper over TLS around gatewren, then plain hyper around the peers in turn.
    async fn round(
        &mut self,
        cx: &Context,
        ours: &Gatewren,
        peers: &[Started],
        plain: &Bare,
    ) -> Result<(), Error> {
        let (connections, time) = (self.connections, cx.args.common.seconds);
        let question = whoami(self.wire);
        let pair = Pair::ours(&question, ours, cx.pinning).await?;
        self.ours.push(pair.triple(connections, time).await?);
        let before = bare(plain, connections, time).await?;
        let mut taken = Vec::new();
        for (peer, started) in cx.peers.iter().zip(peers) {
            if peer.speaks(self.wire) {
                let echo = peer.question(self.wire);
                let measured = sample(&started.asked(&echo), connections, time).await;
                let measured = measured.map_err(|cause| format!("{}: {cause}", peer.name))?;
                taken.push(measured);
            }
        }
        let anchor = [before, bare(plain, connections, time).await?];
        for ((_, triples), subject) in self.peers.iter_mut().zip(taken) {
            triples.push(Triple { anchor, subject });
        }
        Ok(())
    }

    fn figures(&self) -> Vec<Figure> {
        let at = format!("{}-{}", short(self.wire), self.connections);
        if self.connections == 1 {
            return vec![
                self.figure(format!("p50-{at}"), "us", |s| s.p50_us),
                self.figure(format!("p99-{at}"), "us", |s| s.p99_us),
                self.figure(format!("cpu-{at}"), "us", |s| s.cpu_us),
            ];
        }
        let mut figures = vec![
            self.figure(format!("cpu-{at}"), "us", |s| s.cpu_us),
            self.figure(format!("rate-{at}"), "/s", |s| s.rate),
            self.figure(format!("p99-{at}"), "us", |s| s.p99_us),
        ];
        figures.push(self.lead(format!("lead-{at}")));
        figures
    }

    fn figure(&self, key: String, unit: &str, figure: fn(&Sample) -> f64) -> Figure {
        let Compared {
            anchor,
            subject,
            ratio,
        } = compare(&self.ours, figure);
        let peers = self.peers.iter();
        let peers = peers.map(|(name, triples)| (name.clone(), compare(triples, figure).ratio));
        Figure::of(key, ratio)
            .beside(peers.collect())
            .noted(format!(
                "{:.1} {unit} beside hyper's {:.1}{}",
                subject.median,
                anchor.median,
                self.busy()
            ))
    }

    /// A client that was busy all the time may have been the limit itself.
    fn busy(&self) -> &'static str {
        let client = compare(&self.ours, |s| s.client);
        if client.anchor.median.max(client.subject.median) > 0.9 {
            "; the client was busy, so rates flatter the slower one"
        } else {
            ""
        }
    }

    /// Returns gatewren's share of hyper's rate, divided by that of the best peer.
    fn lead(&self, key: String) -> Figure {
        let share = |triples: &[Triple]| compare(triples, |s| s.rate).ratio.median;
        let others = self.peers.iter().filter(|(name, _)| !is_own(name));
        let best = others.max_by(|(_, one), (_, other)| share(one).total_cmp(&share(other)));
        let Some((name, peer)) = best else {
            return Figure::without(key, "no peer was measured");
        };
        let rounds = self.ours.iter().zip(peer);
        let lead = Spread::of(rounds.clone().map(|(ours, peer)| {
            compare(&[*ours], |s| s.rate).ratio.median / compare(&[*peer], |s| s.rate).ratio.median
        }));
        let calls = Spread::of(rounds.map(|(ours, peer)| ours.subject.rate / peer.subject.rate));
        let note = format!(
            "beside {name}; in calls/s, ours over TLS with its audit and theirs plain: {:.2} x",
            calls.median
        );
        Figure::of(key, lead).noted(note)
    }
}

/// Returns whether it is gatewren's own engine in another form, which is not a peer.
pub fn is_own(name: &str) -> bool {
    name.starts_with("gatewren")
}

fn short(wire: Wire) -> &'static str {
    wire.revision().split('-').next().unwrap_or_default()
}

async fn bare(plain: &Bare, connections: u32, time: Duration) -> Result<Sample, Error> {
    let question = echo(Wire::Stateless);
    let asked = Asked {
        address: &plain.address,
        pid: plain.pid(),
        question: &question,
        kind: Kind::Bare(PEER_REPLY),
    };
    sample(&asked, connections, time).await
}

fn listed(triples: &[Triple]) -> Figure {
    let cpu = compare(triples, |s| s.cpu_us);
    let note = format!(
        "{:.0} us beside hyper's {:.0}",
        cpu.subject.median, cpu.anchor.median
    );
    Figure::of("list", cpu.ratio).noted(note)
}

fn read_by_call(read: &[Triple], call: &[Triple]) -> Figure {
    let rounds = read.iter().zip(call);
    let ratio = rounds.map(|(read, call)| read.subject.cpu_us / call.subject.cpu_us);
    let us = compare(read, |s| s.cpu_us).subject.median;
    Figure::of("read", Spread::of(ratio)).noted(format!("{us:.1} us for serverInfo"))
}
