//! The result of handling a request: a response, or the future of one.

use hyper::Response;

use super::keepalive::Pulse;
use super::response_end::BoxFuture;
use super::stream::{Accepts, Answering, respond};
use crate::dispatch::Held;
use gatewren_gate::http::Body;
use gatewren_wire::protocol::Notification;

/// The answer to a request. It is decided synchronously, so none of that state is kept while the answer is awaited.
pub enum Answered {
    /// An immediate response.
    Now(Response<Body>),
    /// A response that is awaited.
    Later(BoxFuture<Response<Body>>),
    /// The reply to a call of the stateless era.
    Reply(Replying),
}

/// A reply that is awaited.
pub struct Replying {
    answering: Answering<Notification>,
    accepts: Accepts,
    pulse: Pulse,
    held: Option<Held>,
}

impl Answered {
    /// Wraps the future of a response.
    pub(super) fn later(response: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self::Later(Box::pin(response))
    }

    /// Wraps the reply to a call of the stateless era. `held` lives as long as the answer does.
    pub(super) fn reply(
        answering: Answering<Notification>,
        accepts: Accepts,
        pulse: Pulse,
        held: Option<Held>,
    ) -> Self {
        Self::Reply(Replying {
            answering,
            accepts,
            pulse,
            held,
        })
    }

    /// Waits for the response.
    pub async fn response(self) -> Response<Body> {
        match self {
            Self::Now(response) => response,
            Self::Later(response) => response.await,
            Self::Reply(reply) => {
                respond(reply.answering, reply.accepts, reply.pulse, reply.held).await
            }
        }
    }
}

impl From<Response<Body>> for Answered {
    fn from(response: Response<Body>) -> Self {
        Self::Now(response)
    }
}
