//! A connection for hyper on which bytes have already been read and written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that first returns the bytes that were read ahead, and that does not write again what was written
/// ahead.
pub(super) struct PrereadStream<T> {
    io: T,
    read: Bytes,
    /// What hyper will write first; its client has it already.
    written: Bytes,
}

impl<T> PrereadStream<T> {
    /// Wraps a connection; `read` was already read from it, and `written` already written.
    pub(super) fn new(io: T, read: Bytes, written: Bytes) -> Self {
        Self { io, read, written }
    }

    /// Returns the connection, and the bytes that were read ahead and not used yet.
    pub(super) fn into_parts(self) -> (T, Bytes) {
        (self.io, self.read)
    }

    /// Skips what was already written; returns the number of skipped bytes.
    fn skip(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.written.split_to(bytes.len().min(self.written.len()));
        if bytes.starts_with(&skipped) {
            Ok(skipped.len())
        } else {
            Err(io::Error::other("other bytes were already written"))
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PrereadStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, room);
        }
        let fits = room.remaining().min(self.read.len());
        room.put_slice(&self.read.split_to(fits));
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for PrereadStream<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.written.is_empty() || bytes.is_empty() {
            return Pin::new(&mut self.io).poll_write(cx, bytes);
        }
        Poll::Ready(self.skip(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.written.is_empty() {
            return Pin::new(&mut self.io).poll_write_vectored(cx, pieces);
        }
        let first = pieces.iter().find(|piece| !piece.is_empty());
        self.poll_write(cx, first.map_or(&[], |piece| piece))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn what_was_read_ahead_is_read_first_and_what_was_written_ahead_is_not_sent_again() {
        let (io, mut client) = duplex(64);
        let mut stream = PrereadStream::new(io, "ab".into(), "12345".into());
        client.write_all(b"cd").await.unwrap();
        let mut read = [0; 4];
        stream.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"abcd");
        stream.write_all(b"12").await.unwrap();
        let pieces = [IoSlice::new(b""), IoSlice::new(b"345"), IoSlice::new(b"6")];
        assert_eq!(stream.write_vectored(&pieces).await.unwrap(), 3);
        let pieces = [IoSlice::new(b"67")];
        assert_eq!(stream.write_vectored(&pieces).await.unwrap(), 2);
        drop(stream);
        let mut sent = String::new();
        client.read_to_string(&mut sent).await.unwrap();
        assert_eq!(sent, "67");
    }

    #[tokio::test]
    async fn a_write_that_crosses_the_end_of_what_was_written_ahead_sends_only_the_rest() {
        let (io, mut client) = duplex(64);
        let mut stream = PrereadStream::new(io, Bytes::new(), "123".into());
        stream.write_all(b"12345").await.unwrap();
        drop(stream);
        let mut sent = String::new();
        client.read_to_string(&mut sent).await.unwrap();
        assert_eq!(sent, "45");
    }

    #[tokio::test]
    async fn other_bytes_than_those_that_were_written_ahead_are_an_error() {
        let (io, _client) = duplex(64);
        let mut stream = PrereadStream::new(io, Bytes::new(), "123".into());
        assert!(stream.write_all(b"124").await.is_err());
    }
}
