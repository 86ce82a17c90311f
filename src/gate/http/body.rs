//! The body of a response: complete, or a stream of events that runs inside the connection's own task.

use std::convert::Infallible;
use std::io::Cursor;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use bytes::{Buf, Bytes};
use hyper::body::{Frame, SizeHint};

use super::event_stream::EventStream;

/// A response's body.
pub enum ResponseBody {
    /// A complete body; `None` once it is sent.
    Whole(Option<BodyChunk>),
    /// A complete body in parts, each freed once it is sent.
    Parts(vec::IntoIter<Bytes>),
    /// A stream of events. Dropping it ends the task that produces them.
    Events(Box<EventStream>),
}

impl ResponseBody {
    /// Returns a body without bytes.
    pub fn empty() -> Self {
        Self::Whole(None)
    }

    /// Returns a body of these bytes.
    pub fn whole(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Whole(Some(BodyChunk::Own(Cursor::new(bytes.into()))))
    }
}

/// Bytes to send.
#[derive(Debug)]
pub enum BodyChunk {
    /// Bytes with one owner, which need no reference count.
    Own(Cursor<Vec<u8>>),
    /// Bytes of an event, which several subscribers may share.
    Shared(Bytes),
}

impl Default for BodyChunk {
    fn default() -> Self {
        Self::Shared(Bytes::new())
    }
}

impl Buf for BodyChunk {
    fn remaining(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.remaining(),
            Self::Shared(bytes) => bytes.remaining(),
        }
    }

    fn chunk(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes.chunk(),
            Self::Shared(bytes) => bytes.chunk(),
        }
    }

    fn advance(&mut self, count: usize) {
        match self {
            Self::Own(bytes) => bytes.advance(count),
            Self::Shared(bytes) => bytes.advance(count),
        }
    }
}

impl hyper::body::Body for ResponseBody {
    type Data = BodyChunk;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<BodyChunk>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Parts(parts) => {
                Poll::Ready(parts.next().map(|b| Ok(Frame::data(BodyChunk::Shared(b)))))
            }
            Self::Events(events) => events
                .poll(cx)
                .map(|bytes| bytes.map(|b| Ok(Frame::data(BodyChunk::Shared(b))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Parts(parts) => parts.as_slice().is_empty(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.remaining() as u64))
            }
            Self::Parts(parts) => {
                SizeHint::with_exact(parts.as_slice().iter().map(|b| b.len() as u64).sum())
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use hyper::body::Body as _;

    use super::*;

    #[tokio::test]
    async fn parts_are_sent_one_behind_the_other_and_let_go_of() {
        let part = Bytes::from(vec![b'x'; 1_000]);
        let parts = vec![Bytes::from("begin"), part.clone(), Bytes::from("end")];
        let mut body = ResponseBody::Parts(parts.into_iter());
        assert_eq!(body.size_hint().exact(), Some(1_008));
        assert!(!body.is_end_stream() && !part.is_unique());
        let mut sent = Vec::new();
        for left in [1_003, 3, 0] {
            let frame = body.frame().await.unwrap().unwrap();
            let mut piece = frame.into_data().unwrap();
            sent.extend_from_slice(piece.chunk());
            piece.advance(piece.remaining());
            assert_eq!(body.size_hint().exact(), Some(left));
        }
        assert!(body.is_end_stream() && body.frame().await.is_none());
        assert_eq!(
            sent,
            ["begin", &"x".repeat(1_000), "end"].concat().as_bytes()
        );
        assert!(part.is_unique(), "nobody else holds what was sent");
    }
}
