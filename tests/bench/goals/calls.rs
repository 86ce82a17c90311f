//! G4 to G7, G19, W1: small calls of gatewren and of the peers in both forms, each between two samples of hyper.

use std::time::Duration;

use crate::common::Error;
use crate::common::load::{Asked, Kind, Sample, sample};
use crate::common::pair::{Compared, Pair, Triple, compare, noise};
use crate::common::peers::{Ability, Peer, Started, echo};
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

/// Others, with one triple per round each.
type Others = Vec<(String, Vec<Triple>)>;

/// One wire at one number of connections; one triple per round.
struct Cell {
    wire: Wire,
    connections: u32,
    ours: Vec<Triple>,
    /// The peers as they are, by plain hyper.
    peers: Others,
    /// The peers behind TLS, a token and a table of calls, by hyper over TLS.
    guarded: Others,
}

/// The peers in one of their forms, with the anchor that serves in the same way and has replies about as long.
struct Form<'a> {
    anchor: Bare,
    peers: Vec<(&'a Peer, Started)>,
    /// The calls of each that were measured.
    calls: Vec<f64>,
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
        let mut plain = Form::plain(cx).await?;
        let mut guarded = Form::guarded(cx, &ours).await?;
        for cell in &mut cells {
            cell.round(cx, &ours).await?;
            plain.measure(cx, cell.asks(), &mut cell.peers).await?;
            guarded.measure(cx, cell.asks(), &mut cell.guarded).await?;
        }
        guarded.has_rows().await?;
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

/// What a cell asks.
#[derive(Clone, Copy)]
struct Asks {
    wire: Wire,
    connections: u32,
}

impl<'a> Form<'a> {
    /// Starts the peers as they are: plain HTTP without a token.
    async fn plain(cx: &'a Context) -> Result<Self, Error> {
        let mut peers = Vec::new();
        for peer in &cx.peers {
            peers.push((peer, peer.start(cx.pinning).await?));
        }
        let anchor = Bare::start(PEER_REPLY, None, cx.pinning)?;
        Ok(Self::of(anchor, peers))
    }

    /// Starts the guarded form of those that have one, with the certificate and the token of this gatewren.
    async fn guarded(cx: &'a Context, ours: &Gatewren) -> Result<Self, Error> {
        let mut peers = Vec::new();
        for peer in cx.peers.iter().filter(|peer| peer.can(Ability::Guard)) {
            peers.push((peer, peer.start_guarded(ours, cx.pinning).await?));
        }
        let anchor = Bare::start(PEER_REPLY, Some(ours), cx.pinning)?;
        Ok(Self::of(anchor, peers))
    }

    fn of(anchor: Bare, peers: Vec<(&'a Peer, Started)>) -> Self {
        let calls = vec![0.0; peers.len()];
        Self {
            anchor,
            peers,
            calls,
        }
    }

    /// Measures the anchor, the peers in turn, and the anchor again.
    async fn measure(
        &mut self,
        cx: &Context,
        asks: Asks,
        others: &mut Others,
    ) -> Result<(), Error> {
        let (connections, time) = (asks.connections, cx.args.common.seconds);
        let before = bare(&self.anchor, connections, time).await?;
        let mut taken = Vec::new();
        for ((peer, started), calls) in self.peers.iter().zip(&mut self.calls) {
            if peer.speaks(asks.wire) {
                let echo = peer.question(asks.wire);
                let measured = sample(&started.asked(&echo), connections, time).await;
                let measured = measured.map_err(|cause| format!("{}: {cause}", peer.name))?;
                *calls += measured.rate * time.as_secs_f64();
                taken.push(measured);
            }
        }
        let anchor = [before, bare(&self.anchor, connections, time).await?];
        for ((_, triples), subject) in others.iter_mut().zip(taken) {
            triples.push(Triple { anchor, subject });
        }
        Ok(())
    }

    /// Returns an error unless each guard has a row about each call that was measured.
    async fn has_rows(&self) -> Result<(), Error> {
        for ((peer, started), calls) in self.peers.iter().zip(&self.calls) {
            let checked = started.has_rows(*calls).await;
            checked.map_err(|cause| format!("{}, guarded: {cause}", peer.name))?;
        }
        Ok(())
    }
}

impl Cell {
    fn new(cx: &Context, wire: Wire, connections: u32) -> Self {
        let those = |peer: &&Peer| peer.speaks(wire);
        let named = |peer: &Peer| (peer.name.clone(), Vec::new());
        let peers = cx.peers.iter().filter(those);
        let guarded = peers.clone().filter(|peer| peer.can(Ability::Guard));
        Self {
            wire,
            connections,
            ours: Vec::new(),
            peers: peers.clone().map(named).collect(),
            guarded: guarded.map(named).collect(),
        }
    }

    fn asks(&self) -> Asks {
        Asks {
            wire: self.wire,
            connections: self.connections,
        }
    }

    /// Measures gatewren between two samples of hyper over TLS.
    async fn round(&mut self, cx: &Context, ours: &Gatewren) -> Result<(), Error> {
        let question = whoami(self.wire);
        let pair = Pair::ours(&question, ours, cx.pinning).await?;
        let time = cx.args.common.seconds;
        self.ours.push(pair.triple(self.connections, time).await?);
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
        figures.push(self.guarded_lead(format!("guarded-lead-{at}")));
        figures.push(self.plain_lead(format!("plain-lead-{at}")));
        figures
    }

    fn figure(&self, key: String, unit: &str, figure: fn(&Sample) -> f64) -> Figure {
        let Compared {
            anchor,
            subject,
            ratio,
        } = compare(&self.ours, figure);
        let by_anchor = |others: &Others| {
            let others = others.iter();
            let others =
                others.map(|(name, triples)| (name.clone(), compare(triples, figure).ratio));
            others.collect()
        };
        Figure::of(key, ratio)
            .beside(by_anchor(&self.peers))
            .guarded(by_anchor(&self.guarded))
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

    /// Returns calls/s by those of the best guarded peer, each as a share of hyper's over TLS right before and after.
    fn guarded_lead(&self, key: String) -> Figure {
        self.lead(key, &self.guarded, share, |name, rates| {
            format!("beside {name}, both over TLS with a token and a row a call: {rates}")
        })
    }

    /// Returns calls/s by those of the best peer as it is, plain against gatewren over TLS.
    fn plain_lead(&self, key: String) -> Figure {
        self.lead(key, &self.peers, rate, |name, rates| {
            format!("beside {name}, ours over TLS with its audit and theirs plain: {rates}")
        })
    }

    fn lead(
        &self,
        key: String,
        others: &Others,
        figure: fn(&Triple) -> f64,
        note: fn(&str, &str) -> String,
    ) -> Figure {
        let median = |triples: &[Triple], figure: fn(&Triple) -> f64| {
            Spread::of(triples.iter().map(figure)).median
        };
        let others = others.iter().filter(|(name, _)| !is_own(name));
        let best = others
            .max_by(|(_, one), (_, other)| median(one, figure).total_cmp(&median(other, figure)));
        let Some((name, peer)) = best else {
            return Figure::without(key, "no peer was measured");
        };
        let rounds = self.ours.iter().zip(peer);
        let lead = Spread::of(rounds.map(|(ours, peer)| figure(ours) / figure(peer)));
        let rates = format!(
            "{:.0} and {:.0} calls/s",
            median(&self.ours, rate),
            median(peer, rate)
        );
        Figure::of(key, lead).noted(note(name, &rates))
    }
}

/// Calls a second.
fn rate(triple: &Triple) -> f64 {
    triple.subject.rate
}

/// The same as a share of the anchor's.
fn share(triple: &Triple) -> f64 {
    compare(&[*triple], |s| s.rate).ratio.median
}

/// Returns whether it is gatewren's own engine in another form, which is not a peer.
pub fn is_own(name: &str) -> bool {
    name.starts_with("gatewren")
}

fn short(wire: Wire) -> &'static str {
    wire.revision().split('-').next().unwrap_or_default()
}

async fn bare(anchor: &Bare, connections: u32, time: Duration) -> Result<Sample, Error> {
    let question = echo(Wire::Stateless);
    let asked = Asked {
        address: &anchor.address,
        pid: anchor.pid(),
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
