//! Reads the head of a connection's first request before hyper gets the connection. hyper's buffers are larger than
//! most heads, which is too much memory for unauthenticated clients.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

/// The initial size of the buffer; it doubles when it is full.
const BEGIN_BYTES: usize = 512;

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
    let read = timeout(within, read_to_end_of_head(stream, most)).await;
    read.ok().flatten()
}

async fn read_to_end_of_head(stream: &mut (impl AsyncRead + Unpin), most: usize) -> Option<Bytes> {
    let mut head = BytesMut::new();
    loop {
        if head.len() == head.capacity() {
            let more = head.len().max(BEGIN_BYTES).min(most - head.len());
            head.reserve(more);
        }
        let from = head.len();
        match stream.read_buf(&mut head).await {
            Ok(0) | Err(_) => return None,
            Ok(_) if ends_in(&head, from) || head.len() >= most => return Some(head.freeze()),
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
}
