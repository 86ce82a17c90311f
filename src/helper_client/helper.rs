//! A handle on the helper: one connection for each operation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::exec::{AuditHead, Frame, Limits, Operation, Request};
use crate::sys::{Requester, current_requester, own_uid};

use super::{
    address::Address,
    captured::Capture,
    error::HelperError,
    finished::{Finished, finish},
    head_source::HeadSource,
    running::Running,
};

/// How long the helper may take to accept a request; then it counts as unreachable. Long enough for one
/// restart of a helper that died.
const ACCEPT_TIME: Duration = Duration::from_secs(10);

/// Whose the helper's socket is; without systemd it is this user's.
const ROOT: u32 = 0;

/// The front's way to the helper; a clone is a pointer.
#[derive(Debug, Clone)]
pub struct Helper {
    address: Arc<Address>,
    /// On whose behalf it asks; when absent, that of the current task.
    requester: Option<Requester>,
    audit: Arc<HeadSource>,
}

impl Helper {
    /// The helper that listens at `path`; nothing is connected before the first operation.
    pub fn connect_to(path: PathBuf) -> Self {
        Self::at(Address::of(path))
    }

    pub(super) fn at(address: Address) -> Self {
        Self {
            address: Arc::new(address),
            requester: None,
            audit: Arc::default(),
        }
    }

    /// The same helper, asked on behalf of this requester, whatever task asks.
    #[must_use]
    pub fn on_behalf_of(&self, requester: Requester) -> Self {
        Self {
            address: self.address.clone(),
            requester: Some(requester),
            audit: self.audit.clone(),
        }
    }

    /// Sends the head of the audit, which `head` returns, with each operation from now on; this holds for all clones.
    pub fn send_audit_head(&self, head: impl Fn() -> Option<AuditHead> + Send + Sync + 'static) {
        self.audit.set(head);
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
            requester: self.requester.clone().or_else(current_requester),
            audit: self.audit.now(),
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
        let running = self.start(operation, limits, reference).await?;
        finish(running, limits, capture, std::future::pending()).await
    }

    async fn hand_over(&self, request: &[u8]) -> Result<Running, HelperError> {
        let unreachable = |e: std::io::Error| HelperError::Unreachable(e.to_string());
        let connected = UnixStream::connect(self.address.path()).await;
        let mut stream = connected.map_err(unreachable)?;
        // The kernel says who listens, whatever stands at the path.
        let listener = stream.peer_cred().map_err(unreachable)?.uid();
        if listener != ROOT && listener != own_uid() {
            return Err(HelperError::Stranger(listener));
        }
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
