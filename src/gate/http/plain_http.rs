//! Answers a client that speaks plain HTTP to a port that speaks TLS.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Whether the client begins with an HTTP method, an uppercase letter; a TLS handshake record begins with byte 22.
pub(super) async fn speaks_plain_http(stream: &TcpStream, deadline: Instant) -> bool {
    let mut first = [0];
    let peeked = timeout_at(deadline, stream.peek(&mut first)).await;
    matches!(peeked, Ok(Ok(1))) && first[0].is_ascii_uppercase()
}

pub(super) async fn explain_tls(mut stream: TcpStream) {
    let words = "This port speaks TLS: use https:// in the address.\n";
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{words}",
        words.len()
    );
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}
