//! How a stream of events leaves hyper once its head is sent: hyper's buffers weigh as much as all else that it needs.

use std::convert::Infallible;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{CONNECTION, HeaderMap, TRANSFER_ENCODING};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{Method, Request, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{Body, Piece};
use super::open::{Counted, Held};

/// What one HTTP/1.1 connection hands over, and when. Its request, its answer and its socket each say here how far they
/// are.
#[derive(Default)]
pub(super) struct Handover(Mutex<Stage>);

#[derive(Default)]
struct Stage {
    way: Way,
    head: Head,
    /// The client wants the connection to end with the answer.
    closes: bool,
    /// What is to be sent behind the head.
    stream: Option<Counted>,
}

/// Whether hyper can be left.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Who asked takes no chunks (RFC 9112, 7.1), or hyper alone knows where the request's body ends.
    #[default]
    Barred,
    /// Something of the request's body is still to be read.
    Unread,
    Free,
}

/// How far hyper is with the answer's head.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Head {
    #[default]
    Coming,
    /// It is made, and hyper asks for what follows.
    Made,
    /// The socket has it.
    Sent,
}

impl Handover {
    /// A request has come.
    pub(super) fn begin(&self, request: &Request<Incoming>) {
        let headers = request.headers();
        let fits = request.version() == Version::HTTP_11
            && request.method() != Method::HEAD
            && !headers.contains_key(TRANSFER_ENCODING);
        let way = match (fits, request.body().is_end_stream()) {
            (false, _) => Way::Barred,
            (true, false) => Way::Unread,
            (true, true) => Way::Free,
        };
        *self.lock() = Stage {
            way,
            closes: closes(headers),
            ..Stage::default()
        };
    }

    /// The request's body was read to its end.
    pub(super) fn was_read(&self) {
        let mut stage = self.lock();
        if stage.way == Way::Unread {
            stage.way = Way::Free;
        }
    }

    /// The answer: a stream is kept for whoever takes it over, and hyper has the head alone.
    pub(super) fn answer(self: &Arc<Self>, held: Held, body: Body) -> Sent {
        let is_stream = matches!(body, Body::Events(_));
        let answer = held.answered(body);
        let mut stage = self.lock();
        if !is_stream || stage.way != Way::Free {
            return Sent::Here(answer);
        }
        stage.stream = Some(answer);
        drop(stage);
        Sent::Apart(self.clone())
    }

    /// The stream, when nothing is left to do for hyper, and whether the connection ends with it.
    pub(super) fn take(&self) -> Option<(Counted, bool)> {
        let mut stage = self.lock();
        if stage.head != Head::Sent {
            return None;
        }
        let closes = stage.closes;
        stage.stream.take().map(|stream| (stream, closes))
    }

    /// hyper asks for what follows the head.
    fn made(&self) {
        let mut stage = self.lock();
        if stage.head == Head::Coming {
            stage.head = Head::Made;
        }
    }

    /// hyper flushes when it has nothing left to write.
    fn flushed(&self) {
        let mut stage = self.lock();
        if stage.head == Head::Made {
            stage.head = Head::Sent;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closes(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    let words = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    words
        .map(str::trim)
        .any(|word| word.eq_ignore_ascii_case("close"))
}

/// The body of an answer, as hyper has it.
pub(super) enum Sent {
    /// All of it.
    Here(Counted),
    /// Nothing: what follows the head is sent by whoever takes it over.
    Apart(Arc<Handover>),
}

impl hyper::body::Body for Sent {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        match self.get_mut() {
            Self::Here(answer) => Pin::new(answer).poll_frame(cx),
            Self::Apart(handover) => {
                handover.made();
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

/// A connection as hyper has it, which notices when hyper has written all that it had to.
pub(super) struct Line<T> {
    io: TokioIo<T>,
    /// What was read before hyper had it.
    ahead: Bytes,
    handover: Arc<Handover>,
}

impl<T> Line<T> {
    /// Of this connection, of which so much was read already.
    pub(super) fn new(io: T, ahead: Bytes, handover: &Arc<Handover>) -> Self {
        Self {
            io: TokioIo::new(io),
            ahead,
            handover: handover.clone(),
        }
    }

    /// The connection, and what hyper has not read yet of what was read before, behind what it has read.
    pub(super) fn into_inner(self, read: Bytes) -> (T, Bytes) {
        let ahead = if self.ahead.is_empty() {
            read
        } else {
            [read, self.ahead].concat().into()
        };
        (self.io.into_inner(), ahead)
    }
}

impl<T: AsyncRead + Unpin> Read for Line<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, room);
        }
        let fits = room.remaining().min(self.ahead.len());
        room.put_slice(&self.ahead.split_to(fits));
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> Write for Line<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.handover.flushed();
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
