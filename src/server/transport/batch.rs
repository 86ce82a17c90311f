//! JSON-RPC batches, which 2025-03-26 allows: each request is answered, and all answers are sent in one array.

use std::sync::Arc;

use super::endpoint::Endpoint;
use super::methods;
use super::running::{at_once, start};
use super::sessions::session::Session;
use super::stream::PendingReply;
use super::wire::ClientMessage;
use crate::dispatch::{CallContext, HeldResource};
use gatewren_gate::guard::Refusal;
use gatewren_wire::protocol::{RpcError, RpcMessage, Version};

/// The requests of a batch, which run concurrently.
pub struct RequestBatch(Vec<PendingReply<ClientMessage>>);

/// Why no request of a batch was started.
pub enum BatchError {
    /// The session does not accept the batch.
    Unfit(RpcError),
    /// A limit does not allow all of it; the client can send it again unchanged.
    Refused(Refusal),
}

impl RequestBatch {
    /// Starts the requests; their notifications are not sent.
    pub fn start(
        endpoint: &Arc<Endpoint>,
        sender: &CallContext,
        session: &Arc<Session>,
        messages: Vec<RpcMessage>,
    ) -> Result<Self, BatchError> {
        check_batch(session, &messages).map_err(BatchError::Unfit)?;
        let mut places = places(endpoint, sender, &messages).map_err(BatchError::Refused)?;
        let mut running = Vec::new();
        for message in messages {
            match message {
                RpcMessage::Request(request) => {
                    running.extend(at_once(endpoint, session, &request, sender).or_else(|| {
                        let place = places.pop()?;
                        Some(start(endpoint, session, request, sender.clone(), place))
                    }));
                }
                RpcMessage::Notification(note) => methods::handle_notification(session, &note),
                RpcMessage::Response(response) => {
                    session.deliver(&response.id, response.outcome);
                }
            }
        }
        Ok(Self(running))
    }

    /// Waits for the answers and returns them in one array; `None` if there is nothing to answer, or no longer.
    pub async fn answers(self) -> Option<Vec<u8>> {
        let mut answers = Vec::new();
        for mut one in self.0 {
            answers.extend(finish(&mut one).await);
        }
        if answers.is_empty() {
            return None;
        }
        Some([b"[".as_slice(), &answers.join(b",".as_slice()), b"]"].concat())
    }
}

fn check_batch(session: &Session, messages: &[RpcMessage]) -> Result<(), RpcError> {
    if session.claims.version() != Version::V2025_03_26 {
        let words = "only sessions of 2025-03-26 support batches; send one message";
        return Err(RpcError::invalid_request(words));
    }
    let joins = |m: &RpcMessage| matches!(m, RpcMessage::Request(r) if r.method == "initialize");
    if messages.iter().any(joins) {
        let words = "initialize cannot be part of a batch; send it as a single message";
        return Err(RpcError::invalid_request(words));
    }
    Ok(())
}

/// Reserves a slot for each request, as if they had been sent separately.
fn places(
    endpoint: &Endpoint,
    sender: &CallContext,
    batch: &[RpcMessage],
) -> Result<Vec<HeldResource>, Refusal> {
    endpoint.guard().charge_batch(&sender.who, batch.len())?;
    let requests = batch.iter().filter_map(|message| match message {
        RpcMessage::Request(request) => Some(request),
        _ => None,
    });
    requests
        .map(|request| endpoint.call(sender, &request.method, &request.params))
        .collect()
}

async fn finish(answering: &mut PendingReply<ClientMessage>) -> Option<Vec<u8>> {
    loop {
        tokio::select! {
            biased;
            Some(_) = async { answering.notes.as_mut()?.recv().await } => {}
            end = &mut answering.end => return end.map(|end| end.body.into_one()),
        }
    }
}
