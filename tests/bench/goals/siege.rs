//! W12: an agent's call on a new connection, with and without thousands of silent connections.

use std::net::TcpStream;
use std::time::Instant;

use crate::common::Error;
use crate::common::load::{Asked, Caller};
use crate::common::servers::Gatewren;
use crate::common::spread::Spread;
use crate::common::wire::{Question, Wire};
use crate::context::{Context, say};
use crate::figure::Figure;

/// Silent connections from one address, more than a server accepts by default.
const SILENT: usize = 4_400;

/// Calls with and without them in each round, each on a new connection.
const CALLS: usize = 50;

const KEY: &str = "besieged-call";

const WHOAMI: Question<'_> = Question {
    wire: Wire::Stateless,
    method: "tools/call",
    name: Some("whoami"),
    params: r#""name":"whoami","arguments":{}"#,
};

/// Measures it.
pub async fn measure(cx: &Context) -> Result<Figure, Error> {
    say("a siege")?;
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    let asked = ours.asked(&WHOAMI);
    let (mut ratios, mut longest_ms) = (Vec::new(), 0.0_f64);
    for _ in cx.rounds() {
        let calm = calls(&asked).await?;
        let socket = ours.address.socket();
        let silent: Result<Vec<TcpStream>, _> =
            (0..SILENT).map(|_| TcpStream::connect(socket)).collect();
        let Ok(silent) = silent else {
            let why = "this process may not open so many connections";
            return Ok(Figure::without(KEY, why));
        };
        let besieged = calls(&asked).await?;
        drop(silent);
        ratios.push(besieged.median / calm.median);
        longest_ms = longest_ms.max(besieged.median);
    }
    let note =
        format!("medians of {CALLS} calls; the longest of those beside them is {longest_ms:.2} ms");
    Ok(Figure::of(KEY, Spread::of(ratios.into_iter())).noted(note))
}

/// Returns the time from connecting to the reply, in milliseconds.
async fn calls(asked: &Asked<'_>) -> Result<Spread, Error> {
    let mut took = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        Caller::open(asked).await?.once().await?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(Spread::of(took.into_iter()))
}
