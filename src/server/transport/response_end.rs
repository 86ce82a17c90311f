//! The end of a call: its last bytes, and the future that waits for them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::StatusCode;

use super::{endpoint::Endpoint, wire};
use crate::dispatch::{CallOutcome, Engine};
use gatewren_gate::guard::{AccessEnd, Principal};
use gatewren_wire::protocol::{MessageBytes, RequestId, RpcError, Version, code};

/// A boxed future.
pub type SendFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The last bytes of a response, and the status to use if nothing was sent before them.
pub struct ResponseEnd {
    /// The status, if it can still be chosen.
    pub status: StatusCode,
    /// A JSON-RPC message.
    pub body: MessageBytes,
}

impl ResponseEnd {
    /// The end of a call that was in progress when its agent's access ended.
    pub fn access_ended(id: &RequestId, end: &AccessEnd) -> Self {
        let error = RpcError::invalid_request(format!("the call was cancelled: {end}"));
        Self {
            status: StatusCode::UNAUTHORIZED,
            body: wire::error(Some(id), &error).into(),
        }
    }

    /// The end of a call of the stateless era.
    pub fn of(engine: &Engine, id: &RequestId, outcome: Result<CallOutcome, RpcError>) -> Self {
        let server = &engine.catalog.server;
        match outcome {
            Ok(CallOutcome::Complete(result)) => Self {
                status: StatusCode::OK,
                body: wire::answer(Some(id), Ok(&result)).into(),
            },
            Ok(CallOutcome::Called(result)) => Self {
                status: StatusCode::OK,
                body: result
                    .answer(id, Version::V2026_07_28, &engine.signature)
                    .into(),
            },
            Ok(CallOutcome::Read(result)) => Self {
                status: StatusCode::OK,
                body: result.answer(id, Version::V2026_07_28, &engine.signature),
            },
            Ok(CallOutcome::Listed(list)) => Self {
                status: StatusCode::OK,
                body: wire::list_answer(id, &list, Version::V2026_07_28).into(),
            },
            Ok(CallOutcome::Ask(question, sealed)) => {
                let mut result = question.to_result(sealed);
                server.sign(&mut result);
                Self {
                    status: StatusCode::OK,
                    body: wire::answer(Some(id), Ok(&result)).into(),
                }
            }
            Err(error) => {
                // A missing capability is the request's fault, even if the tool detected it.
                let missing = error.code == code::MISSING_CAPABILITY;
                let status = if missing {
                    StatusCode::BAD_REQUEST
                } else {
                    StatusCode::OK
                };
                Self {
                    status,
                    body: wire::answer(Some(id), Err(&error)).into(),
                }
            }
        }
    }
}

/// Waits for the end of a call: `None` if the client has cancelled it and must not receive anything more.
pub enum ResponseFuture {
    /// Any future.
    Other(SendFuture<Option<ResponseEnd>>),
    /// A call of the stateless era; not boxed, which saves an allocation for each call.
    Call(CallFuture),
}

impl ResponseFuture {
    /// Wraps any future.
    pub fn when(end: impl Future<Output = Option<ResponseEnd>> + Send + 'static) -> Self {
        Self::Other(Box::pin(end))
    }
}

impl Future for ResponseFuture {
    type Output = Option<ResponseEnd>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Other(end) => end.as_mut().poll(cx),
            Self::Call(call) => call.poll(cx).map(Some),
        }
    }
}

/// A call that ends when its agent's access ends. Most calls end at once, so the future that waits for the agent is
/// created only for those that do not.
pub struct CallFuture {
    endpoint: Arc<Endpoint>,
    id: RequestId,
    who: Principal,
    outcome: SendFuture<Result<CallOutcome, RpcError>>,
    access_end: Option<SendFuture<AccessEnd>>,
}

impl CallFuture {
    /// A call by this agent, answered under this id.
    pub fn new(
        endpoint: Arc<Endpoint>,
        id: RequestId,
        who: Principal,
        outcome: SendFuture<Result<CallOutcome, RpcError>>,
    ) -> Self {
        Self {
            endpoint,
            id,
            who,
            outcome,
            access_end: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<ResponseEnd> {
        if let Poll::Ready(outcome) = self.outcome.as_mut().poll(cx) {
            return Poll::Ready(ResponseEnd::of(self.endpoint.engine(), &self.id, outcome));
        }
        let access_end = self.access_end.get_or_insert_with(|| {
            let (endpoint, who) = (self.endpoint.clone(), self.who.clone());
            Box::pin(async move { endpoint.guard().wait_for_rejection(&who).await })
        });
        access_end
            .as_mut()
            .poll(cx)
            .map(|end| ResponseEnd::access_ended(&self.id, &end))
    }
}
