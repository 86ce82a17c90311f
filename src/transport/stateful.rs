//! 2025-03-26 to 2025-11-25: sessions, as an adapter over the stateless core.

use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use super::{
    batch::{Batch, Unbegun},
    call_stream,
    endpoint::{Endpoint, refuse, sender},
    handshake::Hello,
    lookup::{SESSION, check_version, find},
    methods::notified,
    pulse::Pulse,
    running::{at_once, start},
    session::Session,
    stream::{Accepts, Form, decide},
    wire,
};
use crate::dispatch::instructions;
use crate::guard::{Admitted, Refusal};
use crate::http::{Body, empty, json as json_response};
use crate::protocol::{Message, Request, progress_token};

/// Answers one message of the stateful era.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    message: Message,
) -> Response<Body> {
    let id = match &message {
        Message::Request(request) => Some(request.id.clone()),
        Message::Notification(_) | Message::Response(_) => None,
    };
    if let Err(none) = check_version(&admitted) {
        return none.to_response(id.as_ref());
    }
    if let Message::Request(request) = &message
        && request.method == "initialize"
    {
        return Box::pin(initialize(endpoint, &admitted, request)).await;
    }
    let session = match find(endpoint, &admitted) {
        Ok(session) => session,
        Err(none) => return none.to_response(id.as_ref()),
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
    match check_version(&admitted).and_then(|()| find(endpoint, &admitted)) {
        Err(none) => none.to_response(None),
        Ok(session) => match Batch::start(endpoint, &sender(&admitted), &session, batch) {
            Err(Unbegun::Unfit(error)) => refuse(StatusCode::BAD_REQUEST, None, &error),
            Err(Unbegun::Refused(refusal)) => endpoint.turn_away(&refusal),
            Ok(batch) => match batch.answers().await {
                Some(answers) => json_response(StatusCode::OK, answers),
                None => empty(StatusCode::ACCEPTED),
            },
        },
    }
}

/// DELETE: ends the session with everything that it has under way.
pub async fn end_session(endpoint: &Arc<Endpoint>, admitted: &Admitted) -> Response<Body> {
    match check_version(admitted).and_then(|()| find(endpoint, admitted)) {
        Err(none) => none.to_response(None),
        Ok(session) => {
            endpoint.sessions().end(&session).await;
            empty(StatusCode::NO_CONTENT)
        }
    }
}

/// A client begins: also one that says it has a session already, dead, foreign or alive. A live one is left
/// alone, because another of the agent's clients may use it; if none does, it ends by its age.
async fn initialize(endpoint: &Endpoint, admitted: &Admitted, request: &Request) -> Response<Body> {
    let hello = match Hello::read(request) {
        Ok(hello) => hello,
        Err(error) => return json_response(StatusCode::OK, wire::error(Some(&request.id), &error)),
    };
    let agent = admitted.who().agent_id().as_str();
    let declared = hello.declared();
    let created = endpoint.sessions().create(agent, hello.version, &declared);
    let Ok(session) = created.await else {
        let words = "as many sessions are in use as this agent, or all together, may have; end one";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Refusal::later(status, "too_many_sessions", words, 5).to_response();
    };
    let result = hello.answer(
        endpoint.engine(),
        instructions(&endpoint.engine().catalog, admitted.who()),
    );
    let mut response = json_response(StatusCode::OK, wire::answer(Some(&request.id), Ok(&result)));
    if let Ok(id) = HeaderValue::from_str(&session.id) {
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
    // One that is malformed is refused with the call that it would report on.
    let token = progress_token(&request.params).unwrap_or_default();
    let sender = sender(&admitted);
    let answering = match at_once(endpoint, session, &request, &sender) {
        Some(answering) => answering,
        None => match endpoint.call(&sender) {
            Ok(place) => start(endpoint, session, request, &sender, (accepts.events, place)),
            Err(refusal) => return endpoint.turn_away(&refusal),
        },
    };
    match decide(answering, accepts, Pulse::new(token, endpoint.heartbeat())).await {
        Form::Whole(response) => response,
        Form::Stream(begun) => call_stream::open(session, begun),
    }
}
