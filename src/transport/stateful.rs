//! 2025-03-26 to 2025-11-25: sessions, as an adapter over the stateless core.

use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use super::{
    batch::Batch,
    endpoint::{Endpoint, refuse, sender},
    handshake::Hello,
    lookup::{SESSION, check_version, find},
    methods::notified,
    running::start,
    session::Session,
    stream::{Accepts, respond},
    wire,
};
use crate::guard::Admitted;
use crate::http::{Body, empty, json as json_response};
use crate::protocol::{Message, Request};

/// Answers one message of the stateful era.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    message: Message,
) -> Response<Body> {
    if let Err(none) = check_version(&admitted) {
        return none.to_response();
    }
    if let Message::Request(request) = &message
        && request.method == "initialize"
    {
        return initialize(endpoint, &admitted, request);
    }
    let session = match find(endpoint, &admitted) {
        Ok(session) => session,
        Err(none) => return none.to_response(),
    };
    match message {
        Message::Request(request) => serve(endpoint, admitted, &session, request).await,
        Message::Notification(note) => {
            notified(&session, &note);
            empty(StatusCode::ACCEPTED)
        }
        Message::Response(response) => {
            session.deliver(&response.id, response.outcome);
            empty(StatusCode::ACCEPTED)
        }
    }
}

/// Answers several at once, where the session's revision allows it.
pub async fn answer_batch(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    batch: Vec<Message>,
) -> Response<Body> {
    if let Err(none) = check_version(&admitted) {
        return none.to_response();
    }
    match find(endpoint, &admitted) {
        Err(none) => none.to_response(),
        Ok(session) => match Batch::start(endpoint, &sender(&admitted), &session, batch) {
            Err(error) => refuse(StatusCode::BAD_REQUEST, None, &error),
            Ok(batch) => match batch.answers().await {
                Some(answers) => json_response(StatusCode::OK, answers),
                None => empty(StatusCode::ACCEPTED),
            },
        },
    }
}

/// DELETE: ends the session with everything that it has under way.
pub async fn end_session(endpoint: &Arc<Endpoint>, admitted: &Admitted) -> Response<Body> {
    match find(endpoint, admitted) {
        Err(none) => none.to_response(),
        Ok(session) => {
            endpoint.sessions().end(&session).await;
            empty(StatusCode::NO_CONTENT)
        }
    }
}

fn initialize(endpoint: &Endpoint, admitted: &Admitted, request: &Request) -> Response<Body> {
    let hello = match Hello::read(request) {
        Ok(hello) => hello,
        Err(error) => return json_response(StatusCode::OK, wire::error(Some(&request.id), &error)),
    };
    let (id, _) = endpoint.sessions().create(
        admitted.who().agent_id().as_str(),
        hello.version,
        &hello.declared(),
    );
    let result = hello.answer(endpoint.engine());
    let mut response = json_response(StatusCode::OK, wire::answer(Some(&request.id), Ok(&result)));
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

async fn serve(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    session: &Arc<Session>,
    request: Request,
) -> Response<Body> {
    let accepts = Accepts::read(&admitted.head().headers);
    let token = wire::progress_token(&request.params);
    let answering = start(
        endpoint,
        session,
        request,
        &sender(&admitted),
        accepts.events,
    );
    respond(answering, accepts, token, admitted.into_permit()).await
}
