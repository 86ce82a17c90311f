//! 2025-03-26 to 2025-11-25: sessions, as an adapter over the stateless core.

use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};

use super::batch::{BatchError, RequestBatch};
use super::endpoint::{Endpoint, refuse, sender};
use super::handshake::InitializeRequest;
use super::keepalive::ProgressKeepAlive;
use super::methods::cancels;
use super::response_future::RequestAnswer;
use super::running::{at_once, start};
use super::sessions::lookup::{SESSION, check_version, find};
use super::sessions::passed_message::PassedMessage;
use super::sessions::session::Session;
use super::stream::{AcceptedForms, PendingReply, ResponseForm, decide};
use super::unresumable_call::UnresumableCall;
use super::wire::ClientMessage;
use super::{call_stream, wire};
use crate::dispatch::{CallContext, instructions};
use gatewren_gate::guard::{Admitted, Refusal};
use gatewren_gate::http::{ResponseBody, empty, json as json_response};
use gatewren_wire::protocol::{RpcMessage, RpcRequest, progress_token};

/// Answers a message of the stateful era.
pub fn answer(endpoint: &Arc<Endpoint>, admitted: &Admitted, message: RpcMessage) -> RequestAnswer {
    let id = match &message {
        RpcMessage::Request(request) => Some(request.id.clone()),
        RpcMessage::Notification(_) | RpcMessage::Response(_) => None,
    };
    if let Err(none) = check_version(admitted) {
        return none.to_response(id.as_ref()).into();
    }
    let message = match message {
        RpcMessage::Request(request) if request.method == "initialize" => {
            return initialize(endpoint, admitted, request);
        }
        other => other,
    };
    let session = match find(endpoint, admitted) {
        Ok(session) => session,
        Err(none) => return none.to_response(id.as_ref()).into(),
    };
    match message {
        RpcMessage::Request(request) => serve(endpoint, admitted, &session, request),
        RpcMessage::Notification(note) => {
            if let Some(id) = cancels(&note)
                && !session.cancel(&id)
            {
                let message = PassedMessage::Cancel(id);
                endpoint.sessions().pass_on(&session, &message);
            }
            empty(StatusCode::ACCEPTED).into()
        }
        RpcMessage::Response(response) => {
            if let Some(answer) = session.deliver(&response.id, response.outcome) {
                let message = PassedMessage::Answer(response.id, answer);
                endpoint.sessions().pass_on(&session, &message);
            }
            empty(StatusCode::ACCEPTED).into()
        }
    }
}

/// Answers a batch, if the session's revision allows it.
pub fn answer_batch(
    endpoint: &Arc<Endpoint>,
    admitted: &Admitted,
    batch: Vec<RpcMessage>,
) -> RequestAnswer {
    match check_version(admitted).and_then(|()| find(endpoint, admitted)) {
        Err(none) => none.to_response(None).into(),
        Ok(session) => match RequestBatch::start(endpoint, &sender(admitted), &session, batch) {
            Err(BatchError::Unfit(error)) => refuse(StatusCode::BAD_REQUEST, None, &error).into(),
            Err(BatchError::Refused(refusal)) => endpoint.reject(&refusal).into(),
            Ok(batch) => RequestAnswer::later(async move {
                match batch.answers().await {
                    Some(answers) => json_response(StatusCode::OK, answers),
                    None => empty(StatusCode::ACCEPTED),
                }
            }),
        },
    }
}

/// DELETE: ends the session with everything it has in progress.
pub fn end_session(endpoint: &Arc<Endpoint>, admitted: &Admitted) -> RequestAnswer {
    match check_version(admitted).and_then(|()| find(endpoint, admitted)) {
        Err(none) => none.to_response(None).into(),
        Ok(session) => {
            let endpoint = endpoint.clone();
            RequestAnswer::later(async move {
                endpoint.sessions().end(&session).await;
                empty(StatusCode::NO_CONTENT)
            })
        }
    }
}

/// Starts a session, even if the client sends the id of an ended, unknown or active one. An active one is not
/// ended, because another of the agent's clients may use it; otherwise it expires.
fn initialize(endpoint: &Arc<Endpoint>, admitted: &Admitted, request: RpcRequest) -> RequestAnswer {
    let (endpoint, sender) = (endpoint.clone(), sender(admitted));
    RequestAnswer::later(async move { begin(&endpoint, &sender, &request).await })
}

async fn begin(
    endpoint: &Endpoint,
    sender: &CallContext,
    request: &RpcRequest,
) -> Response<ResponseBody> {
    let hello = match InitializeRequest::read(request) {
        Ok(hello) => hello,
        Err(error) => return json_response(StatusCode::OK, wire::error(Some(&request.id), &error)),
    };
    let agent = sender.who.agent_id().as_str();
    let created = endpoint
        .sessions()
        .create(agent, hello.version, hello.declared_capabilities);
    let Ok(session) = created.await else {
        let words = "the session limit of this agent or of the server is reached; end a session and try again";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        return Refusal::later(status, "too_many_sessions", words, 5).to_response();
    };
    let engine = endpoint.engine();
    let mut offered = engine.catalog.capabilities();
    if !engine.streams() {
        offered = offered.without_streams();
    }
    let words = instructions(&engine.catalog, &sender.who);
    let result = hello.answer(engine, offered, words);
    let mut response = json_response(StatusCode::OK, wire::answer(Some(&request.id), Ok(&result)));
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

fn serve(
    endpoint: &Arc<Endpoint>,
    admitted: &Admitted,
    session: &Arc<Session>,
    request: RpcRequest,
) -> RequestAnswer {
    let accepts = AcceptedForms::read(&admitted.head().headers, endpoint.engine().streams());
    // A malformed token is refused together with its call.
    let token = progress_token(&request.params).unwrap_or_default();
    let sender = CallContext {
        accepts_notifications: accepts.events,
        ..sender(admitted)
    };
    let id = request.id.clone();
    let answering = match at_once(endpoint, session, &request, &sender) {
        Some(answering) => answering,
        None => match endpoint.call(&sender, &request.method, &request.params) {
            Ok(place) => start(endpoint, session, request, sender, place),
            Err(_) => return serve_when_free(endpoint, session, request, sender, accepts),
        },
    };
    let (keep_alive, session) = (
        ProgressKeepAlive::new(token, endpoint.heartbeat()),
        session.clone(),
    );
    // Taken before the future first runs: the client may disconnect earlier.
    let unresumable = UnresumableCall::new(session.flag(&id));
    RequestAnswer::later(async move {
        let running = RunningAnswer {
            answering,
            unresumable,
        };
        respond(&session, running, accepts, keep_alive).await
    })
}

/// The answer to a call, and the call itself as long as its client cannot resume it.
struct RunningAnswer {
    answering: PendingReply<ClientMessage>,
    unresumable: UnresumableCall,
}

/// The same for a call that waits a short time for its slot.
fn serve_when_free(
    endpoint: &Arc<Endpoint>,
    session: &Arc<Session>,
    request: RpcRequest,
    sender: CallContext,
    accepts: AcceptedForms,
) -> RequestAnswer {
    let (endpoint, session) = (endpoint.clone(), session.clone());
    let token = progress_token(&request.params).unwrap_or_default();
    RequestAnswer::later(async move {
        let place = endpoint.call_in_time(&sender, &request.method, &request.params);
        let place = match place.await {
            Ok(place) => place,
            Err(refusal) => return endpoint.reject(&refusal),
        };
        let keep_alive = ProgressKeepAlive::new(token, endpoint.heartbeat());
        let id = request.id.clone();
        let running = RunningAnswer {
            answering: start(&endpoint, &session, request, sender, place),
            unresumable: UnresumableCall::new(session.flag(&id)),
        };
        respond(&session, running, accepts, keep_alive).await
    })
}

async fn respond(
    session: &Arc<Session>,
    running: RunningAnswer,
    accepts: AcceptedForms,
    keep_alive: ProgressKeepAlive,
) -> Response<ResponseBody> {
    let RunningAnswer {
        answering,
        mut unresumable,
    } = running;
    match decide(answering, accepts, keep_alive).await {
        ResponseForm::Whole(response) => {
            unresumable.release();
            response
        }
        ResponseForm::Stream(begun) => call_stream::open(session, begun, unresumable),
    }
}
