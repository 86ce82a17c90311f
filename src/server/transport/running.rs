//! A session's call: it runs in a separate task, because a lost connection does not cancel it.

use std::sync::Arc;

use hyper::StatusCode;
use tokio::sync::{mpsc, oneshot};

use super::endpoint::Endpoint;
use super::response_end::{ResponseEnd, ResponseFuture};
use super::sessions::session::Session;
use super::stream::PendingReply;
use super::wire::ClientMessage;
use super::{methods, question, wire};
use crate::dispatch::{Call, CallContext, CallOutcome, HeldResource};
use gatewren_gate::guard::AccessEnd;
use gatewren_wire::protocol::{
    InputAnswers, MessageBytes, RpcError, RpcRequest, SerializedJson, Version, error_for_stateful,
    for_stateful,
};

/// The maximum number of queued messages of a call; if the queue is full, the call waits.
const QUEUED: usize = 64;

/// The maximum number of rounds of questions of a call; then it fails.
const MAX_ROUNDS: usize = 16;

/// Returned at once: a question that reaches no client would let its call wait in vain.
const UNREACHABLE: &str = "this call must ask the person at the client, but it has no stream for the question; \
                           send it alone, with Accept: application/json, text/event-stream";

/// The error of a message after its agent's access has ended.
pub fn access_ended(end: &AccessEnd) -> RpcError {
    RpcError::invalid_request(format!("access ended: {end}"))
}

/// Answers a request that is not a call, and so needs no slot.
pub fn at_once(
    endpoint: &Arc<Endpoint>,
    session: &Arc<Session>,
    request: &RpcRequest,
    sender: &CallContext,
) -> Option<PendingReply<ClientMessage>> {
    if !methods::is_own(&request.method) {
        return None;
    }
    let (endpoint, session, request) = (endpoint.clone(), session.clone(), request.clone());
    let sender = sender.clone();
    Some(PendingReply {
        notes: None,
        disconnect: None,
        end: ResponseFuture::when(async move {
            let outcome = methods::answer(&endpoint, &session, &sender, &request).await;
            let body = wire::answer(Some(&request.id), outcome.as_ref()).into();
            let status = StatusCode::OK;
            Some(ResponseEnd { status, body })
        }),
    })
}

/// Starts a call and returns the receivers of its messages and its end. It occupies its slot until it has ended,
/// even if its client disconnects.
pub fn start(
    endpoint: &Arc<Endpoint>,
    session: &Arc<Session>,
    request: RpcRequest,
    sender: CallContext,
    place: HeldResource,
) -> PendingReply<ClientMessage> {
    let id = request.id.clone();
    let Some(in_flight) = session.begin(&id) else {
        let error = RpcError::invalid_request("this id is in use, or too many calls are running");
        return finished_reply(wire::error(Some(&id), &error));
    };
    let who = sender.who.clone();
    let running = Running {
        endpoint: endpoint.clone(),
        session: session.clone(),
        context: context(endpoint, session, sender),
        request,
        place,
    };
    let disconnect = running.context.disconnect.clone();
    let (notes, receiver) = mpsc::channel(QUEUED);
    let (finish, finished) = oneshot::channel();
    let (endpoint, session) = (endpoint.clone(), session.clone());
    // Boxed, because a task is moved when it is spawned and when it has ended.
    tokio::spawn(Box::pin(async move {
        // The client may have disconnected; its call still runs.
        tokio::select! {
            biased;
            body = running.run(&notes) => drop(finish.send(ResponseEnd { status: StatusCode::OK, body })),
            // Before the end of the session, which also follows from the end of the agent's access: the client must
            // get the reason.
            end = endpoint.guard().wait_for_rejection(&who) => drop(finish.send(ResponseEnd::access_ended(&id, &end))),
            () = in_flight.cancelled() => {}
        }
        drop(in_flight);
        session.touch();
    }));
    PendingReply {
        notes: Some(receiver),
        disconnect,
        end: ResponseFuture::when(async move { finished.await.ok() }),
    }
}

fn finished_reply(body: Vec<u8>) -> PendingReply<ClientMessage> {
    let end = ResponseEnd {
        status: StatusCode::OK,
        body: body.into(),
    };
    PendingReply {
        notes: None,
        disconnect: None,
        end: ResponseFuture::when(std::future::ready(Some(end))),
    }
}

fn context(endpoint: &Endpoint, session: &Session, sender: CallContext) -> CallContext {
    // Older clients do not reconnect to a stream that was closed before the answer. A session of a connection
    // cannot be resumed at all.
    let comes_back = sender.accepts_notifications
        && session.is_kept()
        && session.claims.version() >= Version::V2025_11_25;
    let mut capabilities = session.claims.capabilities();
    if session.is_kept() && !endpoint.engine().streams() {
        // A question has no stream to its client, so the call is treated like that of a client without forms.
        capabilities = capabilities.without_requests();
    }
    CallContext {
        session: Some(session.claims.name()),
        capabilities,
        log_level: session.level(),
        disconnect: comes_back.then(Arc::default),
        ..sender
    }
}

struct Running {
    endpoint: Arc<Endpoint>,
    session: Arc<Session>,
    context: CallContext,
    request: RpcRequest,
    place: HeldResource,
}

impl Running {
    async fn run(self, stream: &mpsc::Sender<ClientMessage>) -> MessageBytes {
        let RpcRequest { id, method, .. } = &self.request;
        let body = self.rounds(stream).await;
        body.unwrap_or_else(|error| {
            wire::error(Some(id), &error_for_stateful(method, error)).into()
        })
    }

    /// Repeats the call, each time with the answers to the questions of the last round.
    async fn rounds(&self, stream: &mpsc::Sender<ClientMessage>) -> Result<MessageBytes, RpcError> {
        let RpcRequest { id, method, .. } = &self.request;
        let version = self.session.claims.version();
        let mut inputs = InputAnswers::default();
        for _ in 0..MAX_ROUNDS {
            match self.once(inputs, stream).await? {
                CallOutcome::Complete(result) => {
                    let result = for_stateful(method, result, version);
                    return Ok(wire::answer(Some(id), Ok(&result)).into());
                }
                CallOutcome::Called(result) => {
                    return Ok(result.answer(id, version, self.signature()).into());
                }
                CallOutcome::Read(result) => {
                    return Ok(result.answer(id, version, self.signature()));
                }
                CallOutcome::Listed(list) => {
                    return Ok(wire::list_answer(id, &list, version).into());
                }
                CallOutcome::Ask(..) if !self.context.accepts_notifications => {
                    return Err(RpcError::invalid_request(UNREACHABLE));
                }
                CallOutcome::Ask(question, _) => {
                    let responses = question::gather(
                        &self.session,
                        stream,
                        &question.requests,
                        self.endpoint.engine().confirm_timeout(),
                    )
                    .await?;
                    inputs = InputAnswers {
                        responses,
                        state: question.state,
                    };
                }
            }
        }
        Err(RpcError::invalid_request(
            "this call has asked too many questions; nothing was done",
        ))
    }

    fn signature(&self) -> &SerializedJson {
        &self.endpoint.engine().signature
    }

    async fn once(
        &self,
        inputs: InputAnswers,
        stream: &mpsc::Sender<ClientMessage>,
    ) -> Result<CallOutcome, RpcError> {
        let RpcRequest { id, method, params } = self.request.clone();
        // The policy may have changed between a question and its answer.
        let who = self.endpoint.guard().current(&self.context.who);
        let who = who.map_err(|end| access_ended(&end))?;
        let context = CallContext {
            who,
            ..self.context.clone()
        };
        let call = Call {
            id,
            method,
            params,
            context,
            inputs: Some(inputs),
            held: Some(self.place.clone()),
        };
        let mut reply = self.endpoint.engine().answer(call);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(note) = async { reply.notes.as_mut()?.recv().await } => {
                    let _ = stream.send(ClientMessage::Note(note)).await;
                }
                outcome = &mut reply.outcome => break outcome,
            }
        };
        while let Some(note) = reply.notes.as_mut().and_then(|notes| notes.try_recv().ok()) {
            let _ = stream.send(ClientMessage::Note(note)).await;
        }
        outcome
    }
}
