//! A request's body; its unread rest is drained for a while, so that the client receives the response.

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

use super::admission::ConnectionState;
use super::event_stream::ConnectionTakeover;

/// How long the unread rest of a body is drained; then the connection is closed.
const LINGER: Duration = Duration::from_secs(5);

/// The maximum size of a drained rest, in bytes; more closes the connection.
const MAX_REST: u64 = 16 * 1024 * 1024;

/// The body of a request, as it arrives.
///
/// Over HTTP/1.1, closing a connection while the client still writes destroys the response that is on its way (RFC
/// 9112, 9.6). A body that is dropped before its end is therefore drained after the response. HTTP/2 ends a stream
/// without that (RFC 9113, 8.1), and a client that sent `Expect: 100-continue` has not begun to write.
pub struct Upload {
    body: Option<Incoming>,
    lingers: bool,
    /// Notified when the body was read completely, where that matters.
    takeover: Weak<ConnectionTakeover>,
    presence: ConnectionState,
}

impl Upload {
    /// Wraps the request's body.
    pub(super) fn of(
        request: Request<Incoming>,
        takeover: Weak<ConnectionTakeover>,
        presence: &ConnectionState,
    ) -> Request<Self> {
        let lingers =
            request.version() < Version::HTTP_2 && !request.headers().contains_key(EXPECT);
        request.map(|body| Self {
            body: Some(body),
            lingers,
            takeover,
            presence: presence.clone(),
        })
    }

    /// Returns the client's state on its connection.
    pub fn presence(&self) -> &ConnectionState {
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
            && let Some(takeover) = self.takeover.upgrade()
        {
            takeover.was_read();
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
        // Without a runtime, the connection is gone as well.
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
