//! A request's body: what is left unread of it is let run out for a while, so that the answer arrives.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::EXPECT;
use hyper::{Request, Version};
use tokio::runtime::Handle;

use super::admission::Presence;
use super::handover::Handover;

/// How long the rest of a body is read that nobody wants; then the connection is closed on it.
const LINGER: Duration = Duration::from_secs(5);

/// How much of such a rest is read, in bytes; more closes the connection.
const MAX_REST: u64 = 16 * 1024 * 1024;

/// The body of a request, as it arrives.
///
/// Over HTTP/1.1 whoever closes a connection while the other side still writes takes away the answer that
/// is on its way to it (RFC 9112, 9.6). So a body that is dropped before its end is read on behind the
/// answer, and thrown away. HTTP/2 ends a stream without that (RFC 9113, 8.1), and who sent
/// `Expect: 100-continue` has not begun to write.
pub struct Upload {
    body: Option<Incoming>,
    lingers: bool,
    /// Hears that all was read, where that matters.
    handover: Weak<Handover>,
    presence: Presence,
}

impl Upload {
    /// The same request with its body in safe hands.
    pub(super) fn of(
        request: Request<Incoming>,
        handover: Weak<Handover>,
        presence: &Presence,
    ) -> Request<Self> {
        let lingers =
            request.version() < Version::HTTP_2 && !request.headers().contains_key(EXPECT);
        request.map(|body| Self {
            body: Some(body),
            lingers,
            handover,
            presence: presence.clone(),
        })
    }

    /// What is known about the client of its connection.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(&mut *body).poll_frame(context);
        if (matches!(polled, Poll::Ready(None)) || body.is_end_stream())
            && let Some(handover) = self.handover.upgrade()
        {
            handover.was_read();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        // Without a runtime the connection has gone as well.
        if let (true, Some(rest), Ok(runtime)) = (self.lingers, rest, Handle::try_current()) {
            runtime.spawn(tokio::time::timeout(LINGER, run_out(rest)));
        }
    }
}

async fn run_out(mut rest: Incoming) {
    let mut read = 0;
    while let Some(Ok(frame)) = rest.frame().await {
        read += frame.data_ref().map_or(0, |data| data.len() as u64);
        if read > MAX_REST {
            return;
        }
    }
}
