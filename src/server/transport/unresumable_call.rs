//! Ends a session's call if its client disconnects before it receives an event id, because no client can resume it.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::sleep;

use super::in_flight::CancelFlag;

/// How long such a call still runs. MCP 2025-11-25, "Transports": a disconnect by itself does not mean that the client
/// cancels, and a change that is about to end should not be cut off.
pub const GRACE: Duration = Duration::from_secs(10);

/// A call that no stream could be resumed for yet. Dropping it ends the call after [`GRACE`].
pub struct UnresumableCall(Option<CancelFlag>);

impl UnresumableCall {
    /// Watches the call with this flag; `None` watches nothing.
    pub fn new(flag: Option<CancelFlag>) -> Self {
        Self(flag)
    }

    /// Called when the client has its answer, or an event id with which it can get the answer.
    pub fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for UnresumableCall {
    fn drop(&mut self) {
        // Without a runtime the server is gone, and its calls with it.
        if let (Some(flag), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                sleep(GRACE).await;
                flag.cancel();
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::in_flight::InFlight;
    use super::*;
    use gatewren_wire::protocol::RequestId;

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_event_id_ends_a_moment_after_its_client() {
        let calls = InFlight::new(2);
        let id = RequestId::Number(1);
        let call = calls.begin(&id).unwrap();
        drop(UnresumableCall::new(calls.flag(&id)));
        sleep(GRACE / 2).await;
        assert!(!call.mark().is_set());
        sleep(GRACE).await;
        call.cancelled().await;
    }

    #[tokio::test(start_paused = true)]
    async fn neither_an_answered_call_ends_nor_another_one_of_its_id() {
        let calls = InFlight::new(2);
        let id = RequestId::Number(1);
        let call = calls.begin(&id).unwrap();
        let mut answered = UnresumableCall::new(calls.flag(&id));
        answered.release();
        drop(answered);
        drop(UnresumableCall::new(calls.flag(&id)));
        drop(call);
        let next = calls.begin(&id).unwrap();
        sleep(GRACE * 2).await;
        assert!(!next.mark().is_set());
    }
}
