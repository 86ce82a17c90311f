//! How hyper serves HTTP/2, and how late it gets a connection: its buffers and tables take more memory than a client
//! may have that has sent no request.

use std::convert::Infallible;
use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::LazyLock;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::timeout;

use super::body::ResponseBody;
use super::first_head::{MAX_HEAD_BYTES, read_first_headers};
use super::preread::PrereadStream;

/// The maximum number of concurrent requests on one connection; further ones wait.
const STREAMS: u32 = 128;

/// The interval of pings to an idle client.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// The server's settings, the first frame that it sends; the same on each connection.
static SETTINGS: LazyLock<Bytes> = LazyLock::new(record_settings);

/// Returns hyper's builder; a client that answers no ping within `ping_timeout` is disconnected.
pub(super) fn http2_builder(ping_timeout: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(PING_INTERVAL))
        .keep_alive_timeout(ping_timeout);
    builder
}

/// Waits for the headers of the first request. They may have `most` bytes; the client may take `within` for them.
/// Returns the connection for hyper, or `None` if the client disconnected or must be disconnected.
///
/// The client gets the server's settings at once, because it may wait for them (RFC 9113, 3.4). hyper acknowledges
/// the client's settings and its pings when it gets the connection.
pub(super) async fn wait_for_request<T: AsyncRead + AsyncWrite + Unpin>(
    mut stream: T,
    most: usize,
    within: Duration,
) -> Option<PrereadStream<T>> {
    let settings = SETTINGS.clone();
    let sending = async {
        stream.write_all(&settings).await?;
        stream.flush().await
    };
    timeout(within, sending).await.ok()?.ok()?;
    let read = read_first_headers(&mut stream, most, within).await?;
    Some(PrereadStream::new(stream, read, settings))
}

/// Returns what hyper sends before it has read anything.
fn record_settings() -> Bytes {
    let mut sent = Vec::new();
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(Response::new(ResponseBody::empty()))
    });
    let builder = http2_builder(PING_INTERVAL);
    let connection = builder.serve_connection(TokioIo::new(Recorder(&mut sent)), service);
    // It waits for the client's first bytes.
    let _ = pin!(connection).poll(&mut Context::from_waker(Waker::noop()));
    sent.into()
}

/// Keeps what is written to it; nothing can be read from it.
struct Recorder<'a>(&'a mut Vec<u8>);

impl AsyncRead for Recorder<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Recorder<'_> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, duplex};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    #[test]
    fn the_recorded_settings_are_one_frame_with_the_limits() {
        let settings = record_settings();
        // RFC 9113, 4.1 and 6.5: length, type 4, no flags, stream 0, then pairs of a number and a value.
        let (header, pairs) = settings.split_at(9);
        let length = u8::try_from(pairs.len()).unwrap();
        assert_eq!(header, [0, 0, length, 4, 0, 0, 0, 0, 0]);
        let has = |number: u16, value: u32| {
            let pair = [&number.to_be_bytes()[..], &value.to_be_bytes()].concat();
            pairs.chunks(6).any(|found| found == pair)
        };
        assert!(has(3, STREAMS) && has(6, 16 * 1024), "{settings:?}");
        assert_eq!(settings, record_settings(), "the same each time");
    }

    #[tokio::test]
    async fn hyper_gets_a_connection_with_its_first_request_and_sends_its_settings_once() {
        let (server, mut client) = duplex(4096);
        let waiting = tokio::spawn(wait_for_request(server, 4096, WITHIN));
        let mut settings = vec![0; SETTINGS.len()];
        client.read_exact(&mut settings).await.unwrap();
        assert_eq!(settings, SETTINGS[..], "before the client sends anything");
        let get = [0x82, 0x86, 0x84, 0x41, 1, b'a']; // GET http://a/ (RFC 7541, appendix A)
        let headers = [&[0, 0, 6, 1, 5, 0, 0, 0, 1], &get[..]].concat();
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        sent.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
        sent.extend(headers);
        client.write_all(&sent).await.unwrap();
        let stream = waiting.await.unwrap().unwrap();
        let service = service_fn(|request: Request<Incoming>| async move {
            assert_eq!(request.uri().host(), Some("a"));
            Ok::<_, Infallible>(Response::new(ResponseBody::empty()))
        });
        let builder = http2_builder(WITHIN);
        let serving = tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
        let mut kinds = Vec::new();
        while kinds.last() != Some(&1) {
            let mut header = [0; 9];
            client.read_exact(&mut header).await.unwrap();
            let mut payload = vec![0; usize::from(header[2])];
            client.read_exact(&mut payload).await.unwrap();
            assert!(
                header[3] != 4 || header[4] == 1,
                "settings again: {header:?}"
            );
            kinds.push(header[3]);
        }
        drop(client);
        let _ = serving.await.unwrap();
    }
}
