//! JSON-RPC batches, which 2025-03-26 allows: each request answered, all answers in one array.

use std::sync::Arc;

use super::{
    endpoint::Endpoint, methods, running::start, session::Session, stream::Answering,
    wire::ToClient,
};
use crate::dispatch::Context;
use crate::protocol::{Message, RpcError, Version};

/// The requests of a batch, under way side by side.
pub struct Batch(Vec<Answering<ToClient>>);

impl Batch {
    /// Starts its requests; what they say on the way is not sent.
    pub fn start(
        endpoint: &Arc<Endpoint>,
        sender: &Context,
        session: &Arc<Session>,
        messages: Vec<Message>,
    ) -> Result<Self, RpcError> {
        if session.claims.version() != Version::V2025_03_26 {
            let words = "only sessions of 2025-03-26 take batches; send one message";
            return Err(RpcError::invalid_request(words));
        }
        let joins = |m: &Message| matches!(m, Message::Request(r) if r.method == "initialize");
        if messages.iter().any(joins) {
            let words = "initialize stands alone, never in a batch";
            return Err(RpcError::invalid_request(words));
        }
        let mut running = Vec::new();
        for message in messages {
            match message {
                Message::Request(request) => {
                    running.push(start(endpoint, session, request, sender, false));
                }
                Message::Notification(note) => methods::notified(session, &note),
                Message::Response(response) => session.deliver(&response.id, response.outcome),
            }
        }
        Ok(Self(running))
    }

    /// Its answers in one array; `None` when there is nothing to answer, or no longer.
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

async fn finish(answering: &mut Answering<ToClient>) -> Option<Vec<u8>> {
    loop {
        tokio::select! {
            biased;
            Some(_) = async { answering.notes.as_mut()?.recv().await } => {}
            end = &mut answering.end => return end.map(|end| end.body),
        }
    }
}
