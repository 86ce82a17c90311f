//! Sends a stream of events on its connection without hyper: each event is a chunk (RFC 9112, 7.1).

use std::io::{self, ErrorKind, Write as _};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use hyper::body::Body as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::idle::CountedBody;

/// The maximum number of bytes read ahead from a client that sends its next request before the stream has ended;
/// the rest stays in the kernel's buffer.
const AHEAD: usize = 512;

/// The chunk that ends a stream.
const LAST: &[u8] = b"0\r\n\r\n";

/// A stream that is being sent on a connection. One event at a time: the next one is produced when the socket has
/// accepted this one.
pub(in crate::http) struct SseWriter<T> {
    io: T,
    /// `None` after its end.
    stream: Option<CountedBody>,
    chunk: Vec<u8>,
    sent: usize,
    is_flushed: bool,
    ahead: Bytes,
}

impl<T: AsyncRead + AsyncWrite + Unpin> SseWriter<T> {
    /// Creates the sender of this stream; `ahead` was already read from the connection.
    pub(in crate::http) fn new(io: T, stream: CountedBody, ahead: Bytes) -> Self {
        Self {
            io,
            stream: Some(stream),
            chunk: Vec::new(),
            sent: 0,
            // The head may not have been flushed yet.
            is_flushed: false,
            ahead,
        }
    }

    /// Sends the whole stream, and returns the connection with the bytes read ahead. Fails if the client
    /// disconnects.
    ///
    /// Fast path: the figures are at `ConnectionTakeover` and `WakeIsolated`.
    pub(in crate::http) async fn send_all(mut self) -> io::Result<(T, Bytes)> {
        std::future::poll_fn(|cx| self.poll_end(cx)).await?;
        Ok((self.io, self.ahead))
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.read(cx)?;
        loop {
            ready!(self.poll_sent(cx))?;
            let Some(stream) = &mut self.stream else {
                return Poll::Ready(Ok(()));
            };
            match ready!(Pin::new(stream).poll_frame(cx)) {
                Some(Ok(frame)) => self.put(frame.into_data().unwrap_or_default().chunk()),
                None => {
                    self.stream = None;
                    self.chunk.extend_from_slice(LAST);
                }
            }
        }
    }

    fn put(&mut self, event: &[u8]) {
        if event.is_empty() {
            // An empty chunk would end the stream.
            return;
        }
        self.chunk.reserve_exact(event.len() + 20);
        // Writing to a `Vec` cannot fail.
        let _ = write!(self.chunk, "{:x}\r\n", event.len());
        self.chunk.extend_from_slice(event);
        self.chunk.extend_from_slice(b"\r\n");
    }

    /// Detects a disconnect, and buffers what the client sends too early.
    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.ahead.is_empty() {
            return Ok(());
        }
        let mut room = [MaybeUninit::uninit(); AHEAD];
        let mut room = ReadBuf::uninit(&mut room);
        match Pin::new(&mut self.io).poll_read(cx, &mut room) {
            Poll::Pending => Ok(()),
            Poll::Ready(Err(cause)) => Err(cause),
            Poll::Ready(Ok(())) if room.filled().is_empty() => Err(ErrorKind::UnexpectedEof.into()),
            Poll::Ready(Ok(())) => {
                self.ahead = Bytes::copy_from_slice(room.filled());
                Ok(())
            }
        }
    }

    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.chunk.get(self.sent..)
            && !rest.is_empty()
        {
            self.is_flushed = false;
            match ready!(Pin::new(&mut self.io).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                sent => self.sent += sent,
            }
        }
        if !self.is_flushed {
            ready!(Pin::new(&mut self.io).poll_flush(cx))?;
            self.is_flushed = true;
            // An idle stream keeps no buffer.
            self.chunk = Vec::new();
            self.sent = 0;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::super::super::body::ResponseBody;
    use super::super::super::idle::ActivityCounter;
    use super::super::sse::EventSender;
    use super::*;

    fn stream<F>(make: impl FnOnce(EventSender) -> F) -> CountedBody
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let body: ResponseBody = crate::http::events(make).into_body();
        ActivityCounter::new().request().count_response(body)
    }

    #[tokio::test]
    async fn each_event_is_a_chunk_and_what_comes_too_early_is_kept() {
        let (ours, mut theirs) = duplex(64);
        let made = stream(|sender| async move {
            for _ in 0..3 {
                sender.message(None, b"{}").await.unwrap();
            }
        });
        theirs.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        let carried = tokio::spawn(SseWriter::new(ours, made, Bytes::new()).send_all());
        let one = "19\r\nevent: message\ndata: {}\n\n\r\n";
        let mut read = vec![0; 3 * one.len() + LAST.len()];
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(str::from_utf8(&read).unwrap(), one.repeat(3) + "0\r\n\r\n");
        let (_, ahead) = carried.await.unwrap().unwrap();
        assert_eq!(ahead, "GET / HTTP/1.1\r\n");
    }

    #[tokio::test]
    async fn a_client_that_goes_ends_what_makes_its_events() {
        let (ours, theirs) = duplex(64);
        let (held, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
        let made = stream(|_| async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        let carried = tokio::spawn(SseWriter::new(ours, made, Bytes::new()).send_all());
        drop(theirs);
        assert!(carried.await.unwrap().is_err());
        assert_eq!(dropped.recv().await, None);
    }
}
