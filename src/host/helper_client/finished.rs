//! Runs an operation to its end, keeps its output within limits, and can cancel it.

use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::{
    captured::{Capture, CapturedOutput, OutputCollector},
    error::HelperError,
    running::RunningOperation,
};
use gatewren_wire::operations::{Frame, KillReason, OperationEnd, OperationLimits, Stream};

/// How long beyond its own timeout an operation may take to be killed and reported.
const KILL_TIME: Duration = Duration::from_secs(15);

/// A finished operation, with its captured output.
#[derive(Debug, Clone)]
pub struct FinishedOperation {
    /// How it ended.
    pub ending: OperationEnd,
    /// Milliseconds from the request to the end.
    pub duration_ms: u64,
    /// Its standard output.
    pub stdout: CapturedOutput,
    /// Its standard error.
    pub stderr: CapturedOutput,
}

/// Waits until an operation ends. If `enough` completes first, the operation is killed; the output
/// until then is kept.
///
/// # Errors
/// When the helper disconnects or does not enforce the limits.
pub async fn finish(
    running: RunningOperation,
    limits: OperationLimits,
    capture: Capture,
    enough: impl Future<Output = ()>,
) -> Result<FinishedOperation, HelperError> {
    let begun = Instant::now();
    let bound = Duration::from_millis(limits.timeout_ms).saturating_add(KILL_TIME);
    let Ok(collected) = timeout(bound, collect(running, capture, enough)).await else {
        return Err(HelperError::Lost("it exceeded the time limit".into()));
    };
    let (ending, stdout, stderr) = collected?;
    Ok(FinishedOperation {
        ending,
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        stdout: stdout.finish(),
        stderr: stderr.finish(),
    })
}

async fn collect(
    mut running: RunningOperation,
    capture: Capture,
    enough: impl Future<Output = ()>,
) -> Result<(OperationEnd, OutputCollector, OutputCollector), HelperError> {
    let (mut stdout, mut stderr) = (OutputCollector::new(capture), OutputCollector::new(capture));
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
            Frame::End(OperationEnd::Killed { .. }) if told => {
                let why = KillReason::Shutdown;
                return Ok((OperationEnd::Killed { why }, stdout, stderr));
            }
            Frame::End(ending) => return Ok((ending, stdout, stderr)),
        }
    }
}
