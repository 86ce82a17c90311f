//! Runs an operation to its end, keeps its output within limits, and can cancel it.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{
    captured::{Capture, Captured, Collector},
    error::HelperError,
    running::Running,
};
use gatewren_wire::operations::{Ending, Frame, KillReason, Limits, Stream};

/// How long beyond its own timeout an operation may take to be killed and reported.
const KILL_TIME: Duration = Duration::from_secs(15);

/// A finished operation, with its captured output.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Milliseconds from the request to the end.
    pub duration_ms: u64,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
}

/// Waits until an operation ends. If `enough` completes first, the operation is killed; the output
/// until then is kept.
///
/// # Errors
/// When the helper disconnects or does not enforce the limits.
pub async fn finish(
    running: Running,
    limits: Limits,
    capture: Capture,
    enough: impl Future<Output = ()>,
) -> Result<Finished, HelperError> {
    let begun = Instant::now();
    let bound = Duration::from_millis(limits.timeout_ms).saturating_add(KILL_TIME);
    let Ok(collected) = timeout(bound, collect(running, capture, enough)).await else {
        return Err(HelperError::Lost("it exceeded the time limit".into()));
    };
    let (ending, stdout, stderr) = collected?;
    Ok(Finished {
        ending,
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        stdout: stdout.finish(),
        stderr: stderr.finish(),
    })
}

async fn collect(
    mut running: Running,
    capture: Capture,
    enough: impl Future<Output = ()>,
) -> Result<(Ending, Collector, Collector), HelperError> {
    let (mut stdout, mut stderr) = (Collector::new(capture), Collector::new(capture));
    let mut enough = std::pin::pin!(enough);
    let mut told = false;
    loop {
        let frame = tokio::select! {
            frame = running.next() => frame?,
            () = &mut enough, if !told => {
                told = true;
                running.cancel().await?;
                continue;
            }
        };
        match frame {
            Frame::Accepted | Frame::Started => {}
            Frame::Output(Stream::Stdout, bytes) => stdout.push(&bytes),
            Frame::Output(Stream::Stderr, bytes) => stderr.push(&bytes),
            Frame::End(Ending::Killed { .. }) if told => {
                let why = KillReason::Shutdown;
                return Ok((Ending::Killed { why }, stdout, stderr));
            }
            Frame::End(ending) => return Ok((ending, stdout, stderr)),
        }
    }
}
