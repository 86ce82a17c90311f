//! O1: the owner's first page, from its request to its last byte.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Error;
use crate::common::machine::CpuClock;
use crate::common::owner::Owner;
use crate::common::servers::Gatewren;
use crate::common::spread::Spread;
use crate::context::Context;
use crate::figure::Figure;

/// The number of visits.
const VISITS: u32 = 300;

/// Measures time and CPU of a visit of Home, signed in, on an open connection.
pub async fn measure(cx: &Context) -> Result<Vec<Figure>, Error> {
    let ours = Gatewren::start(&cx.args.common, cx.pinning)?;
    let state = ours.state_file();
    let directory = state.parent().ok_or("the state has no directory")?;
    let said = Command::new(&cx.args.common.binary)
        .args(["owner", "setup", "--json", "--dir"])
        .arg(directory)
        .output()?;
    let said: Value = serde_json::from_slice(&said.stdout)?;
    let code = said
        .get("code")
        .and_then(Value::as_str)
        .ok_or("there is no code")?;
    let owner = Owner::sign_in(&ours.address, code).await?;
    let visit = owner.request("/owner/home");
    let mut connection = ours.address.open().await?;
    let cpu = CpuClock::of(ours.pid())?;
    let mut times = Vec::new();
    for _ in 0..VISITS {
        let at = Instant::now();
        let status = connection.exchange(visit.as_bytes()).await?.status();
        if status != "200" {
            return Err(format!("the owner's page answers {status}").into());
        }
        times.push(at.elapsed());
    }
    let spent = cpu.spent()?.as_secs_f64() * 1e3 / f64::from(VISITS);
    let times = Spread::of(times.iter().map(|time: &Duration| time.as_secs_f64() * 1e3));
    let words = format!("Home of a new server; {spent:.2} ms of CPU a visit");
    Ok(vec![Figure::of("page-ms", times).noted(words)])
}
