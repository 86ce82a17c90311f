//! JSON-RPC batches, which 2025-03-26 allows: each request is answered, and all answers are sent in one array.

use std::sync::Arc;

use super::endpoint::Endpoint;
use super::methods;
use super::running::{at_once, start};
use super::sessions::session::Session;
use super::stream::Answering;
use super::wire::ToClient;
use crate::dispatch::{Context, Held};
use gatewren_gate::guard::Refusal;
use gatewren_wire::protocol::{Message, RpcError, Version};

/// The requests of a batch, which run concurrently.
pub struct Batch(Vec<Answering<ToClient>>);

/// Why no request of a batch was started.
pub enum Unbegun {
    /// The session does not accept the batch.
    Unfit(RpcError),
    /// A limit does not allow all of it; the client can send it again unchanged.
    Refused(Refusal),
}

impl Batch {
    /// Starts the requests; their notifications are not sent.
    pub fn start(
        endpoint: &Arc<Endpoint>,
        sender: &Context,
        session: &Arc<Session>,
        messages: Vec<Message>,
    ) -> Result<Self, Unbegun> {
        fits(session, &messages).map_err(Unbegun::Unfit)?;
        let mut places = places(endpoint, sender, &messages).map_err(Unbegun::Refused)?;
        let mut running = Vec::new();
        for message in messages {
            match message {
                Message::Request(request) => {
                    running.extend(at_once(endpoint, session, &request, sender).or_else(|| {
                        let place = places.pop()?;
                        Some(start(endpoint, session, request, sender, (false, place)))
                    }));
                }
                Message::Notification(note) => methods::notified(session, &note),
                Message::Response(response) => session.deliver(&response.id, response.outcome),
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

fn fits(session: &Session, messages: &[Message]) -> Result<(), RpcError> {
    if session.claims.version() != Version::V2025_03_26 {
        let words = "only sessions of 2025-03-26 support batches; send one message";
        return Err(RpcError::invalid_request(words));
    }
    let joins = |m: &Message| matches!(m, Message::Request(r) if r.method == "initialize");
    if messages.iter().any(joins) {
        let words = "initialize cannot be part of a batch; send it as a single message";
        return Err(RpcError::invalid_request(words));
    }
    Ok(())
}

/// Reserves a slot for each request, as if they had been sent separately.
fn places(endpoint: &Endpoint, sender: &Context, batch: &[Message]) -> Result<Vec<Held>, Refusal> {
    endpoint.guard().charge_batch(&sender.who, batch.len())?;
    let requests = batch.iter().filter_map(|message| match message {
        Message::Request(request) => Some(request),
        _ => None,
    });
    requests
        .map(|request| endpoint.call(sender, &request.method, &request.params))
        .collect()
}

async fn finish(answering: &mut Answering<ToClient>) -> Option<Vec<u8>> {
    loop {
        tokio::select! {
            biased;
            Some(_) = async { answering.notes.as_mut()?.recv().await } => {}
            end = &mut answering.end => return end.map(|end| end.body.into_one()),
        }
    }
}
