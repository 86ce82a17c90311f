//! The method: anchor, subject, anchor, repeatedly and for all rows in turn.

use std::io::{Write as _, stderr};

use crate::args::Args;
use crate::common::Error;
use crate::common::machine::{Machine, Pinning, load};
use crate::common::pair::Pair;
use crate::common::servers::Gatewren;
use crate::common::wire::{Question, Wire};
use crate::report::{Cell, Report};
use crate::rows::{ROWS, Row};

/// The request for plain hyper and hyper over TLS, which do not parse it.
const SMALL: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: None,
    params: r#""name":"whoami","arguments":{}"#,
};

/// About as long as a reply of `whoami`.
const SMALL_REPLY: usize = 450;

/// Measures all rows. Each round restarts all servers: the memory layout of a process is part of the noise, and no
/// round uses the audit of another.
pub async fn measure(args: &Args) -> Result<Report, Error> {
    let common = &args.common;
    let machine = Machine::look();
    let pinning = Pinning::begin();
    let rows = || ROWS.iter().filter(|row| row.name.contains(&common.rows));
    let mut cells: Vec<Cell> = rows()
        .flat_map(|row| args.connections.iter().map(|n| Cell::new(row.name, *n)))
        .collect();
    for round in 1..=common.rounds {
        let of = common.rounds;
        writeln!(stderr(), "round {round} of {of}, load {}", load())?;
        let ours = Gatewren::start(common, pinning)?;
        let mut next = cells.iter_mut();
        for row in rows() {
            let pair = pair(row, &ours, pinning).await?;
            for cell in next.by_ref().take(args.connections.len()) {
                let triple = pair.triple(cell.connections, common.seconds).await?;
                cell.triples.push(triple);
                cell.bytes = pair.size;
            }
        }
    }
    Ok(Report {
        machine,
        load_after: load(),
        pinning: pinning.words(),
        rounds: common.rounds,
        seconds: common.seconds.as_secs_f64(),
        cells,
    })
}

async fn pair<'a>(row: &'a Row, ours: &'a Gatewren, pinning: Pinning) -> Result<Pair<'a>, Error> {
    match &row.question {
        Some(question) => Pair::ours(question, ours, pinning).await,
        None => Pair::of_bare(&SMALL, SMALL_REPLY, ours, pinning),
    }
}
