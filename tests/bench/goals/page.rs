//! O1: the owner's first page, from its request to its last byte.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::Error;
use crate::common::machine::CpuClock;
use crate::common::servers::Gatewren;
use crate::common::spread::Spread;
use crate::context::Context;
use crate::figure::Figure;

const PASSWORD: &str = "four+words+of+mine";

/// The number of visits.
const VISITS: u32 = 300;

/// Measures time and CPU of a visit of the inbox, signed in, on an open connection.
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
    let host = ours.address.socket();
    let form = format!("code={code}&password={PASSWORD}&again={PASSWORD}");
    let set_up = format!(
        "POST /owner/set-up HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n{form}",
        form.len()
    );
    let mut connection = ours.address.open().await?;
    let answer = connection.exchange(set_up.as_bytes()).await?;
    let refused = || format!("nobody is signed in: {}", answer.status());
    let cookie = answer.header("set-cookie").ok_or_else(refused)?;
    let cookie = cookie.split(';').next().unwrap_or_default();
    let visit = format!("GET /owner HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\n\r\n");
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
    let words = format!("an empty inbox; {spent:.2} ms of CPU a visit");
    Ok(vec![Figure::of("page-ms", times).noted(words)])
}
