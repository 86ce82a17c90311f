//! JSON-RPC batches, which 2025-03-26 allows: each request answered, all answers in one array.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::{
    endpoint::{Endpoint, refuse},
    methods,
    running::start,
    session::Session,
    stream::Answering,
    wire::ToClient,
};
use crate::guard::Admitted;
use crate::http::{Body, empty, json};
use crate::protocol::{Message, RpcError};

/// Answers a batch. Its requests run side by side; what they say on the way is not sent.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    session: &Arc<Session>,
    batch: Vec<Message>,
) -> Response<Body> {
    let joins = |m: &Message| matches!(m, Message::Request(r) if r.method == "initialize");
    if batch.iter().any(joins) {
        let error = RpcError::invalid_request("initialize stands alone, never in a batch");
        return refuse(StatusCode::BAD_REQUEST, None, &error);
    }
    let mut running = Vec::new();
    for message in batch {
        match message {
            Message::Request(request) => {
                running.push(start(endpoint, session, request, &admitted, false));
            }
            Message::Notification(note) => methods::notified(session, &note),
            Message::Response(response) => session.deliver(&response.id, response.outcome),
        }
    }
    if running.is_empty() {
        return empty(StatusCode::ACCEPTED);
    }
    let mut answers = Vec::new();
    for mut one in running {
        if let Some(end) = finish(&mut one).await {
            answers.push(end);
        }
    }
    let body = [b"[".as_slice(), &answers.join(b",".as_slice()), b"]"].concat();
    json(StatusCode::OK, body)
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
