//! The method: anchor, subject, anchor, again and again, everything in turn.

use std::io::{Write as _, stderr};
use std::time::{Duration, Instant};

use crate::Error;
use crate::args::Args;
use crate::load::{Asked, Caller, Kind, Sample, sample};
use crate::machine::{Machine, Pinning, load};
use crate::report::{Cell, Report};
use crate::rows::{Question, ROWS, Row, Wire};
use crate::servers::{Bare, Gatewren};

/// The anchor right before, the subject, the anchor right after.
#[derive(Debug, Clone, Copy)]
pub struct Triple {
    /// The anchor, before and after.
    pub anchor: [Sample; 2],
    /// What is compared with it.
    pub subject: Sample,
}

/// What plain hyper and hyper over TLS are asked, which understand nothing of it.
const SMALL: Question = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: None,
    params: r#""name":"whoami","arguments":{}"#,
};

/// About as long as a reply of `whoami`.
const SMALL_REPLY: usize = 450;

/// What gatewren does not answer rightly after this long, it never will.
const KNOWN_WITHIN: Duration = Duration::from_secs(10);

/// Measures all rows. Each round starts all servers anew: how the memory of a process happens to lie is
/// part of the noise, and no round sees the audit of another.
pub async fn measure(args: &Args) -> Result<Report, Error> {
    let machine = Machine::look();
    let pinning = Pinning::begin();
    let rows = || ROWS.iter().filter(|row| row.name.contains(&args.rows));
    let mut cells: Vec<Cell> = rows()
        .flat_map(|row| args.connections.iter().map(|n| Cell::new(row.name, *n)))
        .collect();
    for round in 1..=args.rounds {
        writeln!(
            stderr(),
            "round {round} of {}, load {}",
            args.rounds,
            load()
        )?;
        let ours = Gatewren::start(args, pinning)?;
        let mut next = cells.iter_mut();
        for row in rows() {
            let pair = Pair::start(row, &ours, pinning).await?;
            for cell in next.by_ref().take(args.connections.len()) {
                cell.triples
                    .push(pair.triple(args, cell.connections).await?);
                cell.bytes = pair.size;
            }
        }
    }
    Ok(Report {
        machine,
        load_after: load(),
        pinning: pinning.words(),
        rounds: args.rounds,
        seconds: args.seconds.as_secs_f64(),
        cells,
    })
}

/// A row's two servers.
struct Pair<'a> {
    anchor: Bare,
    subject: Subject<'a>,
    question: &'a Question,
    /// The bytes of a reply's body.
    size: usize,
}

enum Subject<'a> {
    Bare(Bare),
    Ours(&'a Gatewren),
}

impl<'a> Pair<'a> {
    async fn start(row: &'a Row, ours: &'a Gatewren, pinning: Pinning) -> Result<Self, Error> {
        let Some(question) = &row.question else {
            return Ok(Self {
                anchor: Bare::plain(SMALL_REPLY, pinning)?,
                subject: Subject::Bare(Bare::over_tls(SMALL_REPLY, ours, pinning)?),
                question: &SMALL,
                size: SMALL_REPLY,
            });
        };
        let size = first_right(&asked_of(ours, question)).await?;
        Ok(Self {
            anchor: Bare::over_tls(size, ours, pinning)?,
            subject: Subject::Ours(ours),
            question,
            size,
        })
    }

    async fn triple(&self, args: &Args, connections: u32) -> Result<Triple, Error> {
        let anchor = self.asked_of_bare(&self.anchor);
        let subject = match &self.subject {
            Subject::Bare(bare) => self.asked_of_bare(bare),
            Subject::Ours(ours) => asked_of(ours, self.question),
        };
        let before = sample(&anchor, connections, args.seconds).await?;
        let subject = sample(&subject, connections, args.seconds).await?;
        let after = sample(&anchor, connections, args.seconds).await?;
        Ok(Triple {
            anchor: [before, after],
            subject,
        })
    }

    fn asked_of_bare<'b>(&'b self, bare: &'b Bare) -> Asked<'b> {
        Asked {
            address: &bare.address,
            pid: bare.pid(),
            question: self.question,
            kind: Kind::Bare(self.size),
        }
    }
}

/// The size of the first right reply. A fresh gatewren does not know all about its box yet.
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

fn asked_of<'b>(ours: &'b Gatewren, question: &'b Question) -> Asked<'b> {
    Asked {
        address: &ours.address,
        pid: ours.pid(),
        question,
        kind: Kind::Mcp(&ours.token),
    }
}
