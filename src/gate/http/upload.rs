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

/// How much of an unread body is drained, and for how long.
#[derive(Debug, Clone, Copy)]
struct DrainLimits {
    time: Duration,
    bytes: u64,
}

/// Over HTTP/1.1; a longer rest closes the connection.
const WHOLE_CONNECTION: DrainLimits = DrainLimits {
    time: Duration::from_secs(5),
    bytes: 16 * 1024 * 1024,
};

/// Over HTTP/2; a longer rest resets its stream.
const ONE_STREAM: DrainLimits = DrainLimits {
    time: Duration::from_millis(100),
    bytes: 64 * 1024,
};

/// The body of a request, as it arrives.
///
/// Over HTTP/1.1, closing a connection while the client still writes destroys the response that is on its way (RFC
/// 9112, 9.6). A body that is dropped before its end is therefore drained after the response. HTTP/2 may reset the
/// stream after the response instead (RFC 9113, 8.1), but curl 7.88, which is Debian 12's, then drops the response. A
/// client that sent `Expect: 100-continue` has not begun to write.
pub struct Upload {
    body: Option<Incoming>,
    drained: Option<DrainLimits>,
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
        let limits = if request.version() < Version::HTTP_2 {
            WHOLE_CONNECTION
        } else {
            ONE_STREAM
        };
        let drained = (!request.headers().contains_key(EXPECT)).then_some(limits);
        request.map(|body| Self {
            body: Some(body),
            drained,
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
        if let (Some(limits), Some(rest), Ok(runtime)) = (self.drained, rest, Handle::try_current())
        {
            runtime.spawn(tokio::time::timeout(
                limits.time,
                run_out(rest, limits.bytes),
            ));
        }
    }
}

async fn run_out(mut rest: Incoming, most: u64) {
    let mut read = 0;
    while let Some(Ok(frame)) = rest.frame().await {
        read += frame.data_ref().map_or(0, |data| data.len() as u64);
        if read > most {
            return;
        }
    }
}
