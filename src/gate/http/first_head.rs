//! Reads the head of a connection's first request before hyper gets the connection. hyper's buffers are larger than
//! most heads, which is too much memory for unauthenticated clients.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// The maximum size of a request's head; a larger one is answered with 431.
pub(super) const MAX_HEAD_BYTES: usize = 16 * 1024;

/// The same for a connection that was admitted when there were many unauthenticated ones; over HTTP/2 it is the size
/// of all bytes up to the end of the first request's headers, and the connection is closed at it.
pub(super) const CROWD_HEAD_BYTES: usize = 8 * 1024;

/// The initial size of the buffer; it doubles when it is full.
const BEGIN_BYTES: usize = 512;

/// The first bytes of every HTTP/2 client (RFC 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size of a frame's header: length, type, flags and stream (RFC 9113, 4.1).
const FRAME_HEADER_BYTES: usize = 9;

/// Types of frames (RFC 9113, 6), and the flag of both that ends a request's headers.
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Reads until the head is complete, or until there are `most` bytes, which hyper then rejects as too many. Returns
/// `None` when the client disconnects before that, or takes longer than `within`.
///
/// Fast path: with smaller heads and HTTP/1.1, a connection without an identity takes less than 20 KiB in a crowd. It
/// has no figure of its own.
pub(super) async fn read_first_head(
    stream: &mut (impl AsyncRead + Unpin),
    most: usize,
    within: Duration,
) -> Option<Bytes> {
    let read = timeout(within, read_until(stream, most, ends_in)).await;
    read.ok().flatten()
}

/// The same for HTTP/2: reads until the headers of the first request are complete. Returns `None` as well when they
/// do not fit into `most` bytes, or when the client sends something else than HTTP/2.
pub(super) async fn read_first_headers(
    stream: &mut (impl AsyncRead + Unpin),
    most: usize,
    within: Duration,
) -> Option<Bytes> {
    let mut frames = FirstFrames::default();
    let is_complete = |bytes: &[u8], _| frames.are_read(bytes);
    let read = timeout(within, read_until(stream, most, is_complete)).await;
    read.ok().flatten().filter(|_| frames.have_headers)
}

/// Reads until `is_complete`, which gets all bytes and the number of those that it has seen, or until there are
/// `most` bytes.
async fn read_until(
    stream: &mut (impl AsyncRead + Unpin),
    most: usize,
    mut is_complete: impl FnMut(&[u8], usize) -> bool,
) -> Option<Bytes> {
    let mut head = BytesMut::new();
    loop {
        if head.len() == head.capacity() {
            let more = head.len().max(BEGIN_BYTES).min(most - head.len());
            head.reserve(more);
        }
        let from = head.len();
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return None,
            Ok(_) if is_complete(&head, from) || head.len() >= most => return Some(head.freeze()),
            Ok(_) => {}
        }
    }
}

/// Whether an empty line ends in the bytes from `from` on; hyper accepts a bare LF as the end of a line, too.
fn ends_in(bytes: &[u8], from: usize) -> bool {
    let new = bytes.get(from.saturating_sub(2)..).unwrap_or_default();
    let found = |end: &[u8]| new.windows(end.len()).any(|window| window == end);
    found(b"\n\r\n") || found(b"\n\n")
}

/// The frames of a client up to the headers of its first request.
#[derive(Default)]
struct FirstFrames {
    /// Where the next frame begins; 0 before the preface.
    next: usize,
    have_headers: bool,
}

impl FirstFrames {
    /// Whether nothing more must be read: the headers are complete, or the preface is wrong.
    fn are_read(&mut self, bytes: &[u8]) -> bool {
        if self.next == 0 {
            let (begin, expected) = (bytes.iter().take(PREFACE.len()), PREFACE.iter());
            if !begin.eq(expected.take(bytes.len())) {
                return true;
            }
            if bytes.len() < PREFACE.len() {
                return false;
            }
            self.next = PREFACE.len();
        }
        while let Some([high, middle, low, kind, flags, ..]) = bytes.get(self.next..) {
            let length = u32::from_be_bytes([0, *high, *middle, *low]);
            let payload = usize::try_from(length).unwrap_or(usize::MAX);
            let end = self
                .next
                .saturating_add(FRAME_HEADER_BYTES)
                .saturating_add(payload);
            if bytes.len() < end {
                return false;
            }
            self.next = end;
            if matches!(*kind, HEADERS | CONTINUATION) && flags & END_HEADERS != 0 {
                self.have_headers = true;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_head_that_comes_byte_by_byte_is_read_and_nothing_behind_its_end() {
        for head in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\nhost: a\n\n".to_owned(),
            format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(3000)),
        ] {
            let (mut server, mut client) = duplex(1);
            let sent = format!("{head}rest");
            let writing = tokio::spawn(async move {
                let _ = client.write_all(sent.as_bytes()).await;
            });
            let read = read_first_head(&mut server, 4096, WITHIN).await;
            assert_eq!(read.unwrap(), head);
            drop(server);
            writing.await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_read_in_time_and_to_its_limit_or_not_at_all() {
        let (mut server, mut client) = duplex(1 << 16);
        client.write_all(&[b'x'; 10_000]).await.unwrap();
        let read = read_first_head(&mut server, 1024, WITHIN).await.unwrap();
        assert!((1024..=2048).contains(&read.len()), "{}", read.len());
        let (mut server, mut client) = duplex(64);
        client.write_all(b"GET / HTTP/1.1\r\nhost").await.unwrap();
        assert_eq!(read_first_head(&mut server, 1024, WITHIN).await, None);
        drop(client);
        assert_eq!(read_first_head(&mut server, 1024, WITHIN).await, None);
    }

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    /// The preface, settings, a ping, and the headers of a request in two frames, in reverse of what ends them.
    fn request() -> Vec<u8> {
        let settings = frame(4, 0, &[]);
        let ping = frame(6, END_HEADERS, b"12345678");
        let headers = frame(HEADERS, 0, &[1; 200]);
        let rest = frame(CONTINUATION, END_HEADERS, b"abc");
        [PREFACE, &settings, &ping, &headers, &rest].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn http2_headers_that_come_byte_by_byte_are_read_and_nothing_behind_their_end() {
        let (mut server, mut client) = duplex(1);
        let request = request();
        let sent = [&request[..], &frame(0, 1, b"body")].concat();
        let writing = tokio::spawn(async move {
            let _ = client.write_all(&sent).await;
        });
        let read = read_first_headers(&mut server, 4096, WITHIN).await;
        assert_eq!(read.unwrap(), request);
        drop(server);
        writing.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn http2_headers_are_read_in_time_and_to_their_limit_or_not_at_all() {
        let request = request();
        let half = &request[..request.len() - 1];
        let other = b"GET / HTTP/1.1\r\n";
        let endless = [PREFACE, &frame(4, 0, &[]).repeat(500)].concat();
        for (sent, most) in [
            (half, 4096),
            (other, 4096),
            (&endless[..], 4096),
            (&request[..], 128),
        ] {
            let (mut server, mut client) = duplex(1 << 16);
            client.write_all(sent).await.unwrap();
            assert_eq!(read_first_headers(&mut server, most, WITHIN).await, None);
            drop(client);
            assert_eq!(read_first_headers(&mut server, most, WITHIN).await, None);
        }
    }
}
