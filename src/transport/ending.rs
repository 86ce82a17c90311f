//! How a call ends: its last bytes, and what they are waited for with.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::StatusCode;

use super::{endpoint::Endpoint, wire};
use crate::dispatch::{Context as Sender, Engine, Outcome};
use crate::protocol::{Id, Parts, RpcError, Version, code};

/// Something that is waited for, wherever it came from.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The last bytes of a response and the status that they have when nothing came before them.
pub struct End {
    /// The status, if it is still free to choose.
    pub status: StatusCode,
    /// A JSON-RPC message.
    pub body: Parts,
}

impl End {
    /// For an agent that lost its token while its call was under way.
    pub fn expelled(id: &Id) -> Self {
        let error = RpcError::invalid_request(
            "this agent's token was revoked or has expired; the call was ended",
        );
        Self {
            status: StatusCode::UNAUTHORIZED,
            body: wire::error(Some(id), &error).into(),
        }
    }

    /// That of a call of the stateless era.
    pub fn of(engine: &Engine, id: &Id, outcome: Result<Outcome, RpcError>) -> Self {
        let server = &engine.catalog.server;
        match outcome {
            Ok(Outcome::Complete(result)) => Self {
                status: StatusCode::OK,
                body: wire::answer(Some(id), Ok(&result)).into(),
            },
            Ok(Outcome::Called(result)) => Self {
                status: StatusCode::OK,
                body: result
                    .answer(id, Version::V2026_07_28, &engine.signature)
                    .into(),
            },
            Ok(Outcome::Read(result)) => Self {
                status: StatusCode::OK,
                body: result.answer(id, Version::V2026_07_28, &engine.signature),
            },
            Ok(Outcome::Listed(list)) => Self {
                status: StatusCode::OK,
                body: wire::listed(id, &list, Version::V2026_07_28).into(),
            },
            Ok(Outcome::Ask(question, sealed)) => {
                let mut result = question.to_result(sealed);
                server.sign(&mut result);
                Self {
                    status: StatusCode::OK,
                    body: wire::answer(Some(id), Ok(&result)).into(),
                }
            }
            Err(error) => {
                // Found by the tool itself, a missing capability is still the request's fault.
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

/// Waits for the end of a call: `None` when the client has cancelled and must hear no more.
#[expect(
    clippy::large_enum_variant,
    reason = "a box for each call is what this spares"
)]
pub enum Ending {
    /// However it comes.
    Other(BoxFuture<Option<End>>),
    /// That of a call of the stateless era.
    Call(Calling),
}

impl Ending {
    /// However it comes.
    pub fn when(end: impl Future<Output = Option<End>> + Send + 'static) -> Self {
        Self::Other(Box::pin(end))
    }
}

impl Future for Ending {
    type Output = Option<End>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Other(end) => end.as_mut().poll(cx),
            Self::Call(call) => call.poll(cx).map(Some),
        }
    }
}

/// A call that ends with its agent. Most end at once, so what waits for the agent's end is made only for those that do
/// not.
pub struct Calling {
    endpoint: Arc<Endpoint>,
    id: Id,
    sender: Sender,
    outcome: BoxFuture<Result<Outcome, RpcError>>,
    expelled: Option<BoxFuture<()>>,
}

impl Calling {
    /// Of this sender, answered under this id.
    pub fn new(
        endpoint: Arc<Endpoint>,
        (id, sender): (Id, Sender),
        outcome: BoxFuture<Result<Outcome, RpcError>>,
    ) -> Self {
        Self {
            endpoint,
            id,
            sender,
            outcome,
            expelled: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Poll::Ready(outcome) = self.outcome.as_mut().poll(cx) {
            return Poll::Ready(End::of(self.endpoint.engine(), &self.id, outcome));
        }
        let expelled = self.expelled.get_or_insert_with(|| {
            let (endpoint, who) = (self.endpoint.clone(), self.sender.who.clone());
            Box::pin(async move { endpoint.guard().expelled(&who).await })
        });
        expelled.as_mut().poll(cx).map(|()| End::expelled(&self.id))
    }
}
