//! The method: many starts in turn, then both servers side by side, first idle and then with calls.

use std::fs;
use std::io::{Write as _, stderr};
use std::time::Duration;

use tokio::time::sleep;

use crate::args::Args;
use crate::common::Error;
use crate::common::machine::{Machine, Pinning, load};
use crate::common::spread::Spread;
use crate::cost::{Held, cpu_shares};
use crate::report::{Report, Row};
use crate::servers::Server;

/// The time before the idle period: gatewren inspects its host, and inspects changes again.
const SETTLING: Duration = Duration::from_secs(30);

/// Calls after which the memory is read again.
const CALLS: usize = 100;

/// Measures both servers.
pub async fn measure(args: &Args) -> Result<Report, Error> {
    let common = &args.common;
    let machine = Machine::look();
    let pinning = Pinning::begin();
    let servers = Server::both(args)?;
    let mut starts = [Vec::new(), Vec::new()];
    for round in 1..=common.rounds {
        writeln!(
            stderr(),
            "start {round} of {}, load {}",
            common.rounds,
            load()
        )?;
        for (server, took) in servers.iter().zip(&mut starts) {
            took.push(server.start(common, pinning).await?.took);
        }
    }
    writeln!(stderr(), "now both rest")?;
    let mut running = Vec::new();
    for server in &servers {
        running.push(server.start(common, pinning).await?);
    }
    sleep(SETTLING).await;
    let pids: Vec<u32> = running.iter().map(|one| one.process.pid()).collect();
    let shares = cpu_shares(&pids, common.seconds).await;
    let mut rows = Vec::new();
    for (((server, started), starts), share) in
        servers.iter().zip(&running).zip(&starts).zip(shares)
    {
        let idle = Held::now(started.process.pid())?;
        // The first connection has been idle too long to be still open.
        let mut caller = server.connect(started).await?;
        for _ in 0..CALLS {
            caller.once().await?;
        }
        rows.push(Row {
            server: server.name(),
            binary_bytes: fs::metadata(server.binary(common))?.len(),
            start_ms: Spread::of(starts.iter().map(|took| took.as_secs_f64() * 1e3)),
            idle,
            after_calls: Held::now(started.process.pid())?,
            idle_cpu_percent: share * 100.0,
        });
    }
    Ok(Report {
        machine,
        load_after: load(),
        pinning: pinning.words(),
        starts: common.rounds,
        idle_seconds: common.seconds.as_secs_f64(),
        calls: CALLS,
        rows,
    })
}
