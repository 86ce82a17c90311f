//! Takes a stream of events away from hyper once its head is sent: hyper's buffers take as much memory as
//! everything else that a stream needs.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderMap, TRANSFER_ENCODING};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Method, Request, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::body::{BodyChunk, ResponseBody};
use super::super::idle::{ActivityGuard, CountedBody};
use super::super::preread::PrereadStream;
use gatewren_base::sys::lock;

/// The state of a takeover on one HTTP/1.1 connection. The request, the response and the socket each record their
/// progress here.
///
/// Fast path: with `queue` and boxed futures, an idle stream takes 25.0 KiB instead of 40.9.
#[derive(Default)]
pub(in crate::http) struct ConnectionTakeover(Mutex<TakeoverState>);

#[derive(Default)]
struct TakeoverState {
    way: BodyProgress,
    head: HeadProgress,
    /// The client asked to close the connection after the response.
    closes: bool,
    /// The stream to send after the head.
    stream: Option<CountedBody>,
}

/// Whether the connection can be taken away from hyper.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum BodyProgress {
    /// The client does not support chunks (RFC 9112, 7.1), or only hyper knows where the request's body ends.
    #[default]
    Impossible,
    /// The request's body is not fully read yet.
    Unread,
    Free,
}

/// The progress of the response's head.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum HeadProgress {
    #[default]
    Coming,
    /// hyper has the head and asks for the body.
    Made,
    /// The head is written to the socket.
    Sent,
}

impl ConnectionTakeover {
    /// Records a new request.
    pub(in crate::http) fn begin(&self, request: &Request<Incoming>) {
        let headers = request.headers();
        let fits = request.version() == Version::HTTP_11
            && request.method() != Method::HEAD
            && !headers.contains_key(TRANSFER_ENCODING);
        let way = match (fits, request.body().is_end_stream()) {
            (false, _) => BodyProgress::Impossible,
            (true, false) => BodyProgress::Unread,
            (true, true) => BodyProgress::Free,
        };
        *lock(&self.0) = TakeoverState {
            way,
            closes: asks_to_close(headers),
            ..TakeoverState::default()
        };
    }

    /// Records that the request's body was read to its end.
    pub(in crate::http) fn was_read(&self) {
        let mut stage = lock(&self.0);
        if stage.way == BodyProgress::Unread {
            stage.way = BodyProgress::Free;
        }
    }

    /// Prepares the response: a stream is held back for the takeover, and hyper gets only the head.
    pub(in crate::http) fn answer(
        self: &Arc<Self>,
        held: ActivityGuard,
        body: ResponseBody,
    ) -> TakeoverBody {
        let is_stream = matches!(body, ResponseBody::Events(_));
        let answer = held.count_response(body);
        let mut stage = lock(&self.0);
        if !is_stream || stage.way != BodyProgress::Free {
            return TakeoverBody::Here(answer);
        }
        stage.stream = Some(answer);
        drop(stage);
        TakeoverBody::Apart(self.clone())
    }

    /// Returns the stream once hyper has nothing left to send, and whether the connection ends with it.
    pub(in crate::http) fn take(&self) -> Option<(CountedBody, bool)> {
        let mut stage = lock(&self.0);
        if stage.head != HeadProgress::Sent {
            return None;
        }
        let closes = stage.closes;
        stage.stream.take().map(|stream| (stream, closes))
    }

    /// Records that hyper asks for the body.
    fn record_head_made(&self) {
        let mut stage = lock(&self.0);
        if stage.head == HeadProgress::Coming {
            stage.head = HeadProgress::Made;
        }
    }

    /// hyper flushes when it has nothing left to write.
    fn flushed(&self) {
        let mut stage = lock(&self.0);
        if stage.head == HeadProgress::Made {
            stage.head = HeadProgress::Sent;
        }
    }
}

fn asks_to_close(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    let words = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    words
        .map(str::trim)
        .any(|word| word.eq_ignore_ascii_case("close"))
}

/// The body of a response, as hyper sees it.
pub(in crate::http) enum TakeoverBody {
    /// The whole body.
    Here(CountedBody),
    /// No bytes: the stream is sent after the takeover.
    Apart(Arc<ConnectionTakeover>),
}

impl hyper::body::Body for TakeoverBody {
    type Data = BodyChunk;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Infallible>>> {
        match self.get_mut() {
            Self::Here(answer) => Pin::new(answer).poll_frame(cx),
            Self::Apart(takeover) => {
                takeover.record_head_made();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(answer) => answer.is_end_stream(),
            Self::Apart(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(answer) => answer.size_hint(),
            Self::Apart(_) => SizeHint::default(),
        }
    }
}

/// A connection as hyper sees it; detects when hyper has written everything.
pub(in crate::http) struct TakeoverIo<T> {
    io: TokioIo<PrereadStream<T>>,
    takeover: Arc<ConnectionTakeover>,
}

impl<T> TakeoverIo<T> {
    /// Wraps a connection; `ahead` was already read from it.
    pub(in crate::http) fn new(io: T, ahead: Bytes, takeover: &Arc<ConnectionTakeover>) -> Self {
        Self {
            io: TokioIo::new(PrereadStream::new(io, ahead, Bytes::new())),
            takeover: takeover.clone(),
        }
    }

    /// Returns the connection, and the unread bytes: those that hyper has read, then those read before it.
    pub(in crate::http) fn into_inner(self, read: Bytes) -> (T, Bytes) {
        let (io, ahead) = self.io.into_inner().into_parts();
        let unread = if ahead.is_empty() {
            read
        } else {
            [read, ahead].concat().into()
        };
        (io, unread)
    }
}

impl<T: AsyncRead + Unpin> Read for TakeoverIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, room)
    }
}

impl<T: AsyncWrite + Unpin> Write for TakeoverIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.takeover.flushed();
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }
}
