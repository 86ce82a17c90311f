//! gatewren and its anchor, measured in triples: a slowdown of the machine affects both.

use std::time::{Duration, Instant};

use super::Error;
use super::load::{Asked, Caller, Kind, Sample, sample};
use super::machine::Pinning;
use super::servers::{Bare, Gatewren};
use super::spread::Spread;
use super::wire::Question;

/// The time limit for gatewren's first correct reply.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// Three samples: the anchor, the subject, the anchor again.
#[derive(Debug, Clone, Copy)]
pub struct Triple {
    /// The anchor, before and after.
    pub anchor: [Sample; 2],
    /// The server that is compared with it.
    pub subject: Sample,
}

/// One figure of anchor and subject, and the ratio of the pairs.
pub struct Compared {
    /// The anchor's figure.
    pub anchor: Spread,
    /// The subject's figure.
    pub subject: Spread,
    /// The subject as a multiple of the anchor, within each triple.
    pub ratio: Spread,
}

/// Compares a figure over all triples.
pub fn compare(triples: &[Triple], figure: fn(&Sample) -> f64) -> Compared {
    let anchor = |t: &Triple| {
        let [before, after] = &t.anchor;
        f64::midpoint(figure(before), figure(after))
    };
    Compared {
        anchor: Spread::of(triples.iter().map(anchor)),
        subject: Spread::of(triples.iter().map(|t| figure(&t.subject))),
        ratio: Spread::of(triples.iter().map(|t| figure(&t.subject) / anchor(t))),
    }
}

/// Returns how far two samples of the anchor, a second apart, differ in CPU per call: the noise of these triples.
pub fn noise(triples: &[Triple]) -> Spread {
    Spread::of(triples.iter().map(|triple| {
        let [before, after] = triple.anchor;
        (before.cpu_us - after.cpu_us).abs() / f64::midpoint(before.cpu_us, after.cpu_us)
    }))
}

/// The two servers of a question.
pub struct Pair<'a> {
    anchor: Server<'a>,
    subject: Server<'a>,
    question: &'a Question<'a>,
    /// The length of a reply's body in bytes.
    pub size: usize,
}

enum Server<'a> {
    Bare(Bare),
    Ours(&'a Gatewren),
}

impl<'a> Pair<'a> {
    /// Pairs gatewren with an anchor over TLS that has replies of the same size.
    pub async fn ours(
        question: &'a Question<'a>,
        ours: &'a Gatewren,
        pinning: Pinning,
    ) -> Result<Self, Error> {
        let size = first_right(&ours.asked(question)).await?;
        Ok(Self {
            anchor: Server::Bare(Bare::start(size, Some(ours), pinning)?),
            subject: Server::Ours(ours),
            question,
            size,
        })
    }

    /// Pairs a gatewren with much data with one that has little.
    pub async fn grown(
        question: &'a Question<'a>,
        [little, much]: [&'a Gatewren; 2],
    ) -> Result<Self, Error> {
        first_right(&little.asked(question)).await?;
        Ok(Self {
            anchor: Server::Ours(little),
            subject: Server::Ours(much),
            question,
            size: first_right(&much.asked(question)).await?,
        })
    }

    /// Pairs the anchor over TLS with the plain anchor, for the cost of TLS itself; neither parses the question.
    pub fn of_bare(
        question: &'a Question<'a>,
        size: usize,
        ours: &Gatewren,
        pinning: Pinning,
    ) -> Result<Self, Error> {
        Ok(Self {
            anchor: Server::Bare(Bare::start(size, None, pinning)?),
            subject: Server::Bare(Bare::start(size, Some(ours), pinning)?),
            question,
            size,
        })
    }

    /// Measures anchor, subject, anchor, for this time each.
    pub async fn triple(&self, connections: u32, time: Duration) -> Result<Triple, Error> {
        let (anchor, subject) = (self.asked_of(&self.anchor), self.asked_of(&self.subject));
        let before = sample(&anchor, connections, time).await?;
        let subject = sample(&subject, connections, time).await?;
        let after = sample(&anchor, connections, time).await?;
        Ok(Triple {
            anchor: [before, after],
            subject,
        })
    }

    fn asked_of<'b>(&'b self, server: &'b Server<'b>) -> Asked<'b> {
        match server {
            Server::Ours(ours) => ours.asked(self.question),
            Server::Bare(bare) => Asked {
                address: &bare.address,
                pid: bare.pid(),
                question: self.question,
                kind: Kind::Bare(self.size),
            },
        }
    }
}

/// Returns the size of the first correct reply. A fresh gatewren does not yet have all data about its host.
async fn first_right(asked: &Asked<'_>) -> Result<usize, Error> {
    let began = Instant::now();
    loop {
        let mut caller = Caller::open(asked).await?;
        match caller.once().await {
            Ok((_, size)) => return Ok(size),
            Err(cause) if began.elapsed() > KNOWN_WITHIN => return Err(cause),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
