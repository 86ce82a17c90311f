//! JSON-RPC batches, which 2025-03-26 allows: each request answered, all answers in one array.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::{
    endpoint::{Endpoint, refuse},
    methods,
    running::{at_once, start},
    session::Session,
    stream::Answering,
    wire::ToClient,
};
use crate::dispatch::Held;
use crate::guard::{Admitted, Refusal};
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
    // Before anything has begun: a batch that finds no place can be sent again as it is.
    let mut places = match places(endpoint, &admitted, &batch) {
        Ok(places) => places,
        Err(refusal) => return endpoint.turn_away(&refusal),
    };
    let mut running = Vec::new();
    for message in batch {
        match message {
            Message::Request(request) => {
                running.extend(at_once(endpoint, session, &request).or_else(|| {
                    let place = places.pop()?;
                    Some(start(endpoint, session, request, &admitted, (false, place)))
                }));
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

/// A place for each of its requests, as if they had come alone.
fn places(
    endpoint: &Endpoint,
    admitted: &Admitted,
    batch: &[Message],
) -> Result<Vec<Held>, Refusal> {
    endpoint.guard().charge_batch(admitted.who(), batch.len())?;
    let requests = batch.iter().filter(|m| matches!(m, Message::Request(_)));
    requests.map(|_| endpoint.call(admitted)).collect()
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
