//! What comes of a request: a response, or what it is waited for with.

use hyper::Response;

use super::{
    ending::BoxFuture,
    pulse::Pulse,
    stream::{Accepts, Answering, respond},
};
use crate::dispatch::Held;
use crate::http::Body;
use crate::protocol::Notification;

/// What is answered to a request. To find out what to do takes no waiting, so nothing of that is carried along while
/// it is done.
pub enum Answered {
    /// At once.
    Now(Response<Body>),
    /// In its own time.
    Later(BoxFuture<Response<Body>>),
    /// As a call of the stateless era is.
    Reply(Replying),
}

/// A reply that is to be waited for.
pub struct Replying {
    answering: Answering<Notification>,
    accepts: Accepts,
    pulse: Pulse,
    held: Option<Held>,
}

impl Answered {
    /// In its own time.
    pub(super) fn later(response: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self::Later(Box::pin(response))
    }

    /// As a call of the stateless era is: `held` lives as long as the answer does.
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

    /// The response, when it is there.
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
