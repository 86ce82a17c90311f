//! One connection: TLS, then HTTP/1.1 or HTTP/2, with its timeouts and its shutdown.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::admission::{ConnectionState, OpenConnection};
use super::body::ResponseBody;
use super::event_stream::{ConnectionTakeover, SseWriter, TakeoverIo};
use super::first_head::{CROWD_HEAD_BYTES, MAX_HEAD_BYTES, read_first_head};
use super::http2::{http2_builder, wait_for_request};
use super::idle::{ActivityCounter, CountedBody};
use super::listen::AcceptedConnection;
use super::penalties::Offence;
use super::plain_http::{explain_tls, speaks_plain_http};
use super::preread::PrereadStream;
use super::tls::Acceptors;
use super::upload::Upload;

/// Answers one request from one address.
pub type Handler = dyn Fn(Request<Upload>, SocketAddr) -> Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>
    + Send
    + Sync;

/// The timeouts of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For the TLS handshake; a slower client is disconnected.
    pub handshake: Duration,
    /// For a request's head, and for the wait between two requests; a slower client is disconnected.
    pub header: Duration,
}

/// The timeout of an unauthenticated client for its handshake and for each head while there are many connections.
const TIME_UNDER_PRESSURE: Duration = Duration::from_secs(2);

/// The value of the header `Connection` that ends a connection.
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The maximum number of headers of a request; more are answered with 431.
const MAX_HEADERS: usize = 64;

/// Serves connections with the same settings.
#[derive(Clone)]
pub struct HttpServer {
    /// `None` for plain HTTP on loopback.
    pub tls: Option<Acceptors>,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Answers requests.
    pub handler: Arc<Handler>,
    /// Becomes true when connections must end after their current requests.
    pub stop: watch::Receiver<bool>,
}

impl HttpServer {
    /// Serves one connection to its end, or until it must end for another one.
    pub async fn serve(self, accepted: AcceptedConnection, connected: OpenConnection) {
        let address = accepted.peer;
        let presence = connected.presence().clone();
        tokio::select! {
            () = self.serve_connection(accepted.stream, Peer { address, presence }) => {}
            () = connected.wait_for_eviction() => {
                tracing::debug!(peer = %address, "connection closed to make room for another one");
            }
        }
    }

    async fn serve_connection(self, stream: TcpStream, peer: Peer) {
        let Some(acceptors) = self.tls.clone() else {
            return self.http1(stream, peer).await;
        };
        // HTTP/2 needs more memory before the first request than HTTP/1.1.
        let acceptor = if peer.presence.is_in_crowd() {
            acceptors.http1_first
        } else {
            acceptors.http2_first
        };
        let deadline = Instant::now() + peer.shorten_timeout(self.timeouts.handshake);
        if speaks_plain_http(&stream, deadline).await {
            return explain_tls(stream).await;
        }
        // Boxed, so that the memory of the handshake and of the requests is freed afterwards: a stream may last for
        // weeks.
        let Some(stream) = Box::pin(accept_tls(acceptor, stream, &peer, deadline)).await else {
            return;
        };
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            let Some(stream) = self.delay_http2(stream, &peer).await else {
                return log_rest(&peer);
            };
            Box::pin(self.http2(stream, peer)).await;
        } else {
            self.http1(stream, peer).await;
        }
    }

    /// In a crowd, waits for the first request before hyper gets the connection. Returns `None` if the client must
    /// be disconnected.
    async fn delay_http2<T>(&self, stream: T, peer: &Peer) -> Option<PrereadStream<T>>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        if !peer.presence.is_in_crowd() {
            return Some(PrereadStream::new(stream, Bytes::new(), Bytes::new()));
        }
        let within = peer.shorten_timeout(self.timeouts.header);
        wait_for_request(stream, CROWD_HEAD_BYTES, within).await
    }

    async fn http1(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send, peer: Peer) {
        let mut stream = stream;
        let within = peer.shorten_timeout(self.timeouts.header);
        let first = read_first_head(&mut stream, peer.head_bytes(), within).await;
        let Some(mut ahead) = first else {
            return log_rest(&peer);
        };
        let asked = Arc::new(Notify::new());
        loop {
            let requests = self.requests(stream, ahead, &peer, &asked);
            let Some(handed) = Box::pin(requests).await else {
                return;
            };
            let (io, read) = handed.line;
            let carried = SseWriter::new(io, handed.stream, read);
            (stream, ahead) = match carried.send_all().await {
                Ok(rest) => rest,
                Err(cause) => return log_cut(&peer, &cause),
            };
            if handed.closes || *self.stop.borrow() {
                let _ = timeout(self.timeouts.header, stream.shutdown()).await;
                return;
            }
        }
    }

    /// Answers requests until the connection ends, or until only a stream of events remains to be sent.
    async fn requests<T: AsyncRead + AsyncWrite + Unpin + Send>(
        &self,
        stream: T,
        ahead: Bytes,
        peer: &Peer,
        asked: &Arc<Notify>,
    ) -> Option<HandedStream<T>> {
        let (handler, open) = (self.handler.clone(), ActivityCounter::new());
        let (counted, client) = (open.clone(), peer.clone());
        let takeover = Arc::new(ConnectionTakeover::default());
        let (hands_over, has_asked) = (takeover.clone(), asked.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            has_asked.notify_one();
            let held = counted.request();
            hands_over.begin(&request);
            let chunked = request.headers().contains_key(TRANSFER_ENCODING);
            let (hands_over, client) = (hands_over.clone(), client.clone());
            let upload = Upload::of(request, Arc::downgrade(&hands_over), &client.presence);
            let answer = handler(upload, client.address);
            async move {
                let mut response = answer.await;
                // A chunked request may have declared a length as well, which hyper has dropped. The rest of the
                // body, as a proxy saw it, must not be parsed as a request (RFC 9112, 6.1).
                if chunked || client.ends_after_response() {
                    response.headers_mut().insert(CONNECTION, CLOSE);
                }
                Ok::<_, Infallible>(response.map(|body| hands_over.answer(held, body)))
            }
        });
        let mut connection = hyper::server::conn::http1::Builder::new()
            .header_read_timeout(None) // Otherwise hyper would start a timer for each head.
            .max_headers(MAX_HEADERS)
            .max_buf_size(peer.head_bytes())
            .serve_connection(TakeoverIo::new(stream, ahead, &takeover), service);
        let left = tokio::select! {
            left = drive_http1(&mut connection, &takeover) => left,
            () = self.wait_for_stop(asked) => Http1End::Stopped,
            () = open.rests(|| peer.shorten_timeout(self.timeouts.header)) => Http1End::Resting,
        };
        let left = if let Http1End::Stopped = left {
            Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                left = drive_http1(&mut connection, &takeover) => left,
                () = open.rests(|| peer.shorten_timeout(self.timeouts.header)) => Http1End::Resting,
            }
        } else {
            left
        };
        let Http1End::Stream(stream, closes) = left else {
            left.log(peer);
            return None;
        };
        let parts = connection.into_parts();
        let line = parts.io.into_inner(parts.read_buf);
        Some(HandedStream {
            line,
            stream,
            closes,
        })
    }

    /// Waits until the connection must end. A connection that was accepted but has sent no request yet may send one
    /// first, within the timeout of a head: its client cannot know of the shutdown, and would report the disconnect
    /// as a failure.
    async fn wait_for_stop(&self, asked: &Notify) {
        let _ = self.stop.clone().wait_for(|stop| *stop).await;
        let _ = timeout(self.timeouts.header, asked.notified()).await;
    }

    async fn http2(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer) {
        let (handler, open) = (self.handler.clone(), ActivityCounter::new());
        let (counted, client) = (open.clone(), peer.clone());
        let asked = Arc::new(Notify::new());
        let must_end = Arc::new(Notify::new());
        let (has_asked, ends) = (asked.clone(), must_end.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            has_asked.notify_one();
            let head_alone = request.method() == Method::HEAD;
            let held = counted.request();
            let upload = Upload::of(request, Weak::new(), &client.presence);
            let answer = handler(upload, client.address);
            let (client, ends) = (client.clone(), ends.clone());
            async move {
                let mut response = answer.await;
                if client.ends_after_response() {
                    ends.notify_one();
                }
                if head_alone {
                    // hyper omits the body over HTTP/1.1, but sends it here, and clients would treat the stream as
                    // malformed (RFC 9113, 8.1.1).
                    *response.body_mut() = ResponseBody::empty();
                }
                Ok::<_, Infallible>(response.map(|body| held.count_response(body)))
            }
        });
        let connection =
            http2_builder(self.timeouts.header).serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        // From the preface on, hyper has no timeout for a client that sends nothing or an incomplete frame.
        tokio::select! {
            ended = connection.as_mut() => return log_end(&peer, ended),
            () = self.wait_for_stop(&asked) => connection.as_mut().graceful_shutdown(),
            () = must_end.notified() => connection.as_mut().graceful_shutdown(),
            () = open.rests(|| peer.shorten_timeout(self.timeouts.header)) => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            ended = connection.as_mut() => log_end(&peer, ended),
            () = open.rests(|| peer.closing_timeout(self.timeouts.header)) => log_rest(&peer),
        }
    }
}

/// The client of a connection.
#[derive(Clone)]
struct Peer {
    address: SocketAddr,
    presence: ConnectionState,
}

impl Peer {
    /// The maximum size of a request's head.
    fn head_bytes(&self) -> usize {
        if self.presence.is_in_crowd() {
            CROWD_HEAD_BYTES
        } else {
            MAX_HEAD_BYTES
        }
    }

    /// Whether the connection ends with the response to a request: it is still unauthenticated, and there were many
    /// such connections when it was admitted. A new connection takes less memory than hyper keeps for this one.
    fn ends_after_response(&self) -> bool {
        self.presence.is_in_crowd() && !self.presence.is_identified()
    }

    /// Returns this time, or less for a client whose connection ends with a response.
    fn closing_timeout(&self, time: Duration) -> Duration {
        if self.ends_after_response() {
            time.min(TIME_UNDER_PRESSURE)
        } else {
            self.shorten_timeout(time)
        }
    }

    /// Returns this time, or less for a client with short timeouts.
    fn shorten_timeout(&self, time: Duration) -> Duration {
        if self.presence.is_under_pressure() {
            time.min(TIME_UNDER_PRESSURE)
        } else {
            time
        }
    }
}

/// A connection that only carries a stream from now on.
struct HandedStream<T> {
    /// The connection, with bytes of the next request.
    line: (T, Bytes),
    stream: CountedBody,
    /// Whether the connection ends with the stream.
    closes: bool,
}

/// Why hyper no longer serves the connection.
enum Http1End {
    Ended(hyper::Result<()>),
    Resting,
    Stopped,
    /// It sends only a stream from now on; the flag is true if the connection ends with the stream.
    Stream(CountedBody, bool),
}

impl Http1End {
    fn log(self, peer: &Peer) {
        match self {
            Self::Ended(ended) => log_end(peer, ended),
            Self::Resting => log_rest(peer),
            Self::Stopped | Self::Stream(..) => {}
        }
    }
}

async fn drive_http1(
    connection: &mut (impl Future<Output = hyper::Result<()>> + Unpin),
    takeover: &ConnectionTakeover,
) -> Http1End {
    poll_fn(|cx| match Pin::new(&mut *connection).poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Http1End::Ended(ended)),
        Poll::Pending => match takeover.take() {
            Some((stream, closes)) => Poll::Ready(Http1End::Stream(stream, closes)),
            None => Poll::Pending,
        },
    })
    .await
}

async fn accept_tls(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    peer: &Peer,
    deadline: Instant,
) -> Option<Box<TlsStream<TcpStream>>> {
    match timeout_at(deadline, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => return Some(Box::new(stream)),
        Ok(Err(cause)) => {
            tracing::debug!(peer = %peer.address, %cause, "TLS handshake failed");
            if is_garbage(&cause) {
                peer.presence.penalise(Offence::Garbage);
            }
        }
        Err(_) => {
            tracing::debug!(peer = %peer.address, "TLS handshake timed out");
            peer.presence.penalise(Offence::SlowHandshake);
        }
    }
    None
}

/// Whether a client sent anything other than TLS. A client that rejects the certificate sends an alert, and a port
/// scan sends nothing.
fn is_garbage(cause: &io::Error) -> bool {
    let inner = cause.get_ref();
    let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidMessage(_)))
}

fn log_end(peer: &Peer, ended: hyper::Result<()>) {
    if let Err(cause) = ended {
        tracing::debug!(peer = %peer.address, %cause, "connection ended early");
    }
}

fn log_cut(peer: &Peer, cause: &io::Error) {
    tracing::debug!(peer = %peer.address, %cause, "a stream's client disconnected");
}

fn log_rest(peer: &Peer) {
    tracing::debug!(peer = %peer.address, "idle connection closed");
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};

    use super::super::admission::{ConnectionLimits, ConnectionSource, Connections};
    use super::super::reply;
    use super::*;

    /// The only client of its server.
    async fn peer() -> Peer {
        let source = ConnectionSource {
            prefix: Ipv4Addr::LOCALHOST.into(),
            is_shared: true,
        };
        let limits = ConnectionLimits {
            total: 1,
            of_source: 1,
        };
        let connected = Connections::default().admit(source, limits).await;
        Peer {
            address: (Ipv4Addr::LOCALHOST, 1).into(),
            presence: connected.presence().clone(),
        }
    }

    /// Answers `/` with its path, and everything else with a stream that sends one event when it is notified.
    fn server(may_speak: &Arc<Notify>) -> (HttpServer, watch::Sender<bool>) {
        let (stopper, stop) = watch::channel(false);
        let may_speak = may_speak.clone();
        let handler: Arc<Handler> = Arc::new(move |request, _| {
            let (path, may_speak) = (request.uri().path().to_owned(), may_speak.clone());
            Box::pin(async move {
                if path == "/" {
                    return reply::text(path);
                }
                reply::events(|sender| async move {
                    may_speak.notified().await;
                    let _ = sender.message(None, b"{}").await;
                })
            })
        });
        let timeouts = Timeouts {
            handshake: Duration::from_secs(5),
            header: Duration::from_secs(5),
        };
        let server = HttpServer {
            tls: None,
            timeouts,
            handler,
            stop,
        };
        (server, stopper)
    }

    async fn reads_to(client: &mut DuplexStream, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            read.push(client.read_u8().await.unwrap());
        }
        String::from_utf8(read).unwrap()
    }

    async fn send_request(client: &mut DuplexStream, line: &str) {
        let request = format!("{line} HTTP/1.1\r\nhost: a\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
    }

    #[tokio::test]
    async fn a_stream_leaves_hyper_when_its_head_is_sent() {
        let may_speak = Arc::new(Notify::new());
        let (server, _stopper) = server(&may_speak);
        let (ours, mut client) = duplex(4096);
        send_request(&mut client, "GET /").await;
        send_request(&mut client, "GET /events").await;
        let asked = Arc::new(Notify::new());
        let left = server
            .requests(ours, Bytes::new(), &peer().await, &asked)
            .await;
        let handed = left.unwrap();
        assert!(!handed.closes && handed.line.1.is_empty());
        let answer = reads_to(&mut client, "\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let head = reads_to(&mut client, "\r\n\r\n").await;
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
    }

    #[tokio::test]
    async fn one_connection_carries_streams_and_answers_in_turn_also_what_was_asked_too_early() {
        let may_speak = Arc::new(Notify::new());
        let (server, _stopper) = server(&may_speak);
        let (ours, mut client) = duplex(4096);
        let ends = tokio::spawn(async move { server.http1(ours, peer().await).await });
        for _ in 0..3 {
            send_request(&mut client, "GET /events").await;
            reads_to(&mut client, "\r\n\r\n").await;
            send_request(&mut client, "GET /").await;
            send_request(&mut client, "GET /").await;
            may_speak.notify_one();
            let events = reads_to(&mut client, "0\r\n\r\n").await;
            assert_eq!(events, "19\r\nevent: message\ndata: {}\n\n\r\n0\r\n\r\n");
            for _ in 0..2 {
                let head = reads_to(&mut client, "\r\n\r\n").await;
                assert!(head.contains("content-length: 1"), "{head}");
                assert_eq!(client.read_u8().await.unwrap(), b'/');
            }
        }
        drop(client);
        ends.await.unwrap();
    }

    #[tokio::test]
    async fn the_connection_ends_with_the_stream_where_the_client_says_so() {
        let may_speak = Arc::new(Notify::new());
        let (server, _stopper) = server(&may_speak);
        let (ours, mut client) = duplex(4096);
        let ends = tokio::spawn(async move { server.http1(ours, peer().await).await });
        send_request(
            &mut client,
            "GET /events HTTP/1.1\r\nconnection: close\r\nx: ",
        )
        .await;
        may_speak.notify_one();
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        assert!(all.ends_with("\n\n\r\n0\r\n\r\n"), "{all}");
        ends.await.unwrap();
    }

    #[tokio::test]
    async fn who_takes_no_chunks_has_hyper_end_the_stream_with_the_connection() {
        let may_speak = Arc::new(Notify::new());
        let (server, _stopper) = server(&may_speak);
        let (ours, mut client) = duplex(4096);
        let ends = tokio::spawn(async move { server.http1(ours, peer().await).await });
        client
            .write_all(b"GET /events HTTP/1.0\r\n\r\n")
            .await
            .unwrap();
        may_speak.notify_one();
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        assert!(
            all.ends_with("\r\n\r\nevent: message\ndata: {}\n\n"),
            "{all}"
        );
        ends.await.unwrap();
    }
}
