//! A handle to the helper; each operation has its own connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use gatewren_base::sys::{
    Requester, current_requester, intent_is_pending, intent_is_written, own_uid,
};
use gatewren_wire::operations::{
    AuditHead, Frame, HelperRequest, Operation, OperationLimits, Release,
};

use super::{
    address::SocketPath,
    captured::Capture,
    error::HelperError,
    finished::{FinishedOperation, finish},
    head_source::AuditHeadSource,
    running::RunningOperation,
};

/// How long the helper may take to accept a request before it counts as unreachable. Long enough
/// for one restart of a helper that died.
const ACCEPT_TIME: Duration = Duration::from_secs(10);

/// The owner of the helper's socket; without systemd it is this user.
const ROOT: u32 = 0;

/// The front's handle to the helper; a clone is cheap.
#[derive(Debug, Clone)]
pub struct HelperClient {
    address: Arc<SocketPath>,
    /// The requester of its operations; if absent, the requester of the current task.
    requester: Option<Requester>,
    audit: Arc<AuditHeadSource>,
}

impl HelperClient {
    /// Returns a handle to the helper that listens at `path`; it connects with the first operation.
    pub fn connect_to(path: PathBuf) -> Self {
        Self::at(SocketPath::of(path))
    }

    pub(super) fn at(address: SocketPath) -> Self {
        Self {
            address: Arc::new(address),
            requester: None,
            audit: Arc::default(),
        }
    }

    /// Returns the same helper with a fixed requester, independent of the calling task.
    #[must_use]
    pub fn on_behalf_of(&self, requester: Requester) -> Self {
        Self {
            address: self.address.clone(),
            requester: Some(requester),
            audit: self.audit.clone(),
        }
    }

    /// From now on, sends the head of the audit, as `head` returns it, with each operation of every
    /// clone.
    pub fn send_audit_head(&self, head: impl Fn() -> Option<AuditHead> + Send + Sync + 'static) {
        self.audit.set(head);
    }

    /// Sends one operation to the helper. Returns when the helper has accepted it, and when the call's intent is on the
    /// disk: a command is prepared meanwhile, and any other operation is not sent before.
    ///
    /// `reference` identifies the call in the helper's log.
    ///
    /// # Errors
    /// [`HelperError::Unreachable`] when no helper accepts it within ten seconds, and [`HelperError::Unrecorded`] when
    /// the intent cannot be written. Then nothing runs.
    pub async fn start(
        &self,
        operation: Operation,
        limits: OperationLimits,
        reference: &str,
    ) -> Result<RunningOperation, HelperError> {
        let held = operation.is_command() && intent_is_pending();
        if !held && !intent_is_written().await {
            return Err(HelperError::Unrecorded);
        }
        let request = HelperRequest {
            operation,
            limits,
            reference: reference.to_owned(),
            requester: self.requester.clone().or_else(current_requester),
            audit: self.audit.now(),
            held,
        };
        let bytes = request.encode();
        let bytes = bytes.map_err(|e| HelperError::Protocol(e.to_string()))?;
        let mut accepted = match timeout(ACCEPT_TIME, self.send_request(&bytes)).await {
            Ok(accepted) => accepted?,
            Err(_) => {
                return Err(HelperError::Unreachable(
                    "it did not accept the call in time".into(),
                ));
            }
        };
        if held {
            if !intent_is_written().await {
                return Err(HelperError::Unrecorded);
            }
            let audit = self.audit.now();
            accepted.release(&Release { audit }).await?;
        }
        Ok(accepted)
    }

    /// Runs one operation to its end and keeps as much of its output as `capture` allows.
    ///
    /// # Errors
    /// When the helper cannot be reached, disconnects, or does not enforce the limits.
    pub async fn run(
        &self,
        operation: Operation,
        limits: OperationLimits,
        reference: &str,
        capture: Capture,
    ) -> Result<FinishedOperation, HelperError> {
        let running = self.start(operation, limits, reference).await?;
        finish(running, limits, capture, std::future::pending()).await
    }

    async fn send_request(&self, request: &[u8]) -> Result<RunningOperation, HelperError> {
        let unreachable = |e: std::io::Error| HelperError::Unreachable(e.to_string());
        let connected = UnixStream::connect(self.address.path()).await;
        let mut stream = connected.map_err(unreachable)?;
        // The kernel reports who listens, whatever file is at the path.
        let listener = stream.peer_cred().map_err(unreachable)?.uid();
        if listener != ROOT && listener != own_uid() {
            return Err(HelperError::Stranger(listener));
        }
        stream.write_all(request).await.map_err(unreachable)?;
        let mut running = RunningOperation::new(stream);
        match running.next().await {
            Ok(Frame::Accepted) => Ok(running),
            Ok(other) => Err(HelperError::Protocol(format!("first frame {other:?}"))),
            Err(HelperError::Lost(cause)) => Err(HelperError::Unreachable(cause)),
            Err(other) => Err(other),
        }
    }
}
