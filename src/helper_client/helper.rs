//! A handle on the helper: one connection for each operation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::exec::{Ending, Frame, Limits, Operation, Request, Stream};

use super::{
    address::Address,
    captured::{Capture, Captured, Collector},
    error::HelperError,
    running::Running,
};

/// How long the helper may take to accept a request; then it counts as unreachable. Long enough for one
/// restart of a helper that died.
const ACCEPT_TIME: Duration = Duration::from_secs(10);

/// How long past its own limit an operation may take to be killed and reported.
const KILL_TIME: Duration = Duration::from_secs(15);

/// The front's way to the helper; a clone is a pointer.
#[derive(Debug, Clone)]
pub struct Helper {
    address: Arc<Address>,
}

/// An operation that ended, with what was kept of its output.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// Milliseconds from the request to the end.
    pub duration_ms: u64,
    /// What it printed.
    pub stdout: Captured,
    /// What it complained of.
    pub stderr: Captured,
}

impl Helper {
    /// The helper that listens at `path`; nothing is connected before the first operation.
    pub fn connect_to(path: PathBuf) -> Self {
        Self::at(Address::of(path))
    }

    pub(super) fn at(address: Address) -> Self {
        Self {
            address: Arc::new(address),
        }
    }

    /// Hands one operation to the helper; returns when the helper has accepted it.
    ///
    /// `reference` names the call in the helper's log.
    ///
    /// # Errors
    /// [`HelperError::Unreachable`] when nobody accepts it within ten seconds.
    pub async fn start(
        &self,
        operation: Operation,
        limits: Limits,
        reference: &str,
    ) -> Result<Running, HelperError> {
        let request = Request {
            operation,
            limits,
            reference: reference.to_owned(),
        };
        let bytes = request.encode();
        let bytes = bytes.map_err(|e| HelperError::Protocol(e.to_string()))?;
        match timeout(ACCEPT_TIME, self.hand_over(&bytes)).await {
            Ok(accepted) => accepted,
            Err(_) => Err(HelperError::Unreachable("did not accept in time".into())),
        }
    }

    /// Runs one operation to its end and keeps of its output what `capture` says.
    ///
    /// # Errors
    /// When the helper cannot be reached, goes away, or does not keep the limits.
    pub async fn run(
        &self,
        operation: Operation,
        limits: Limits,
        reference: &str,
        capture: Capture,
    ) -> Result<Finished, HelperError> {
        let begun = Instant::now();
        let running = self.start(operation, limits, reference).await?;
        let bound = Duration::from_millis(limits.timeout_ms).saturating_add(KILL_TIME);
        let Ok(collected) = timeout(bound, collect(running, capture)).await else {
            return Err(HelperError::Lost("it did not keep the time limit".into()));
        };
        let (ending, stdout, stderr) = collected?;
        Ok(Finished {
            ending,
            duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            stdout: stdout.finish(),
            stderr: stderr.finish(),
        })
    }

    async fn hand_over(&self, request: &[u8]) -> Result<Running, HelperError> {
        let unreachable = |e: std::io::Error| HelperError::Unreachable(e.to_string());
        let connected = UnixStream::connect(self.address.path()).await;
        let mut stream = connected.map_err(unreachable)?;
        stream.write_all(request).await.map_err(unreachable)?;
        let mut running = Running::new(stream);
        match running.next().await {
            Ok(Frame::Accepted) => Ok(running),
            Ok(other) => Err(HelperError::Protocol(format!("first frame {other:?}"))),
            Err(HelperError::Lost(cause)) => Err(HelperError::Unreachable(cause)),
            Err(other) => Err(other),
        }
    }
}

async fn collect(
    mut running: Running,
    capture: Capture,
) -> Result<(Ending, Collector, Collector), HelperError> {
    let (mut stdout, mut stderr) = (Collector::new(capture), Collector::new(capture));
    loop {
        match running.next().await? {
            Frame::Accepted => {}
            Frame::Output(Stream::Stdout, bytes) => stdout.push(&bytes),
            Frame::Output(Stream::Stderr, bytes) => stderr.push(&bytes),
            Frame::End(ending) => return Ok((ending, stdout, stderr)),
        }
    }
}
