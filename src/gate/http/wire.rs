//! A connection to a server for repeated requests; responses may be streams.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::server_trust::ServerVerification;
use gatewren_base::sys::{end_when_gone, end_when_stalled};

/// The timeout from the name lookup to the end of the handshake; after it the server counts as unreachable.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a server may accept no data, or answer no keepalive probe, before the connection is closed. A call may
/// last for hours, but not on a server that lost power.
const STALLED: Duration = Duration::from_secs(30);

/// Why there is no response.
#[derive(Debug)]
pub enum RemoteConnectionError {
    /// The address is invalid.
    Address(&'static str),
    /// The server is not the expected one. No request was sent.
    Stranger(String),
    /// The connection failed, so no request was sent.
    Away(io::Error),
    /// The connection broke, and the server may have received the request.
    Broken(String),
}

impl fmt::Display for RemoteConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(words) => f.write_str(words),
            Self::Stranger(cause) => write!(
                f,
                "the server's identity cannot be verified ({cause}), and nothing was sent. Without a pin, this \
                 machine must trust the server's certificate: pass the pin that `gatewren pair` prints. With a \
                 pin, either another machine intercepts the connection, or the server has a new key"
            ),
            Self::Away(cause) => write!(f, "the server cannot be reached: {cause}"),
            Self::Broken(cause) => write!(f, "the connection to the server broke: {cause}"),
        }
    }
}

impl std::error::Error for RemoteConnectionError {}

/// A server, and how it is verified.
pub struct RemoteServer {
    host: String,
    port: u16,
    /// The value of the `Host` header.
    authority: HeaderValue,
    /// The path of requests.
    path: Uri,
    tls: Arc<ClientConfig>,
}

/// A connection to the server.
pub struct RemoteConnection(http1::SendRequest<Full<Bytes>>);

impl RemoteServer {
    /// Parses an address `https://host:port/path`; other schemes are rejected, because others could read the
    /// traffic.
    pub fn new(address: &str, known: ServerVerification) -> Result<Self, RemoteConnectionError> {
        let none = || {
            RemoteConnectionError::Address("the address must have the form https://host:port/path")
        };
        let uri: Uri = address.parse().map_err(|_| none())?;
        if uri.scheme_str() != Some("https") {
            return Err(none());
        }
        let authority = uri.authority().ok_or_else(none)?;
        let host = authority.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(none());
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(443),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| none())?,
            path: path.parse().map_err(|_| none())?,
            tls: known.config().map_err(RemoteConnectionError::Away)?,
        })
    }

    /// Connects. The connection lasts as long as this value or the body of a response is held.
    pub async fn connect(&self) -> Result<RemoteConnection, RemoteConnectionError> {
        let connected = tokio::time::timeout(CONNECT, self.connected()).await;
        connected
            .unwrap_or_else(|_| Err(RemoteConnectionError::Away(io::ErrorKind::TimedOut.into())))
    }

    async fn connected(&self) -> Result<RemoteConnection, RemoteConnectionError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await;
        let stream = stream.map_err(RemoteConnectionError::Away)?;
        let _ = stream.set_nodelay(true);
        // Older kernels ignore these options and wait longer.
        let _ = end_when_stalled(&stream, STALLED);
        let _ = end_when_gone(&stream, STALLED);
        let name = ServerName::try_from(self.host.clone()).map_err(|_| {
            RemoteConnectionError::Address("the host is neither a name nor an address")
        })?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream);
        let stream = stream.await.map_err(stranger_or_away)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|cause| RemoteConnectionError::Away(io::Error::other(cause)))?;
        tokio::spawn(async move {
            if let Err(cause) = connection.await {
                tracing::debug!(%cause, "a connection to the server has ended");
            }
        });
        Ok(RemoteConnection(sender))
    }

    /// Sets the server, path and user agent of a request that has a method, its own headers and a body.
    pub fn address(&self, request: &mut Request<Full<Bytes>>) {
        *request.uri_mut() = self.path.clone();
        let agent = HeaderValue::from_static(concat!("gatewren/", env!("CARGO_PKG_VERSION")));
        let headers = request.headers_mut();
        headers.insert(HOST, self.authority.clone());
        headers.insert(USER_AGENT, agent);
    }
}

impl RemoteConnection {
    /// Whether a request can be sent now.
    pub fn is_free(&self) -> bool {
        self.0.is_ready() && !self.0.is_closed()
    }

    /// Sends a request. The error states whether the server may have received it.
    pub async fn ask(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, RemoteConnectionError> {
        if let Err(cause) = self.0.ready().await {
            return Err(RemoteConnectionError::Away(io::Error::other(cause)));
        }
        let answered = self.0.try_send_request(request).await;
        answered.map_err(|mut error| match error.take_message() {
            Some(_) => RemoteConnectionError::Away(io::Error::other(error.into_error())),
            None => RemoteConnectionError::Broken(error.into_error().to_string()),
        })
    }
}

/// The cause of a failed handshake is the server, or the network.
fn stranger_or_away(cause: io::Error) -> RemoteConnectionError {
    let inner = cause.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            RemoteConnectionError::Stranger(why.to_string())
        }
        _ => RemoteConnectionError::Away(cause),
    }
}
