//! The body of a response: whole, or a stream of events that runs inside the connection's own task.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::sse::Events;

/// A response's body.
pub enum Body {
    /// All of it at once; taken when it is sent.
    Whole(Option<Bytes>),
    /// Events as they happen. Dropping it ends what makes them.
    Events(Box<Events>),
}

impl Body {
    /// No bytes.
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    /// These bytes.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events
                .poll(cx)
                .map(|bytes| bytes.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}
