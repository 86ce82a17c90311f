//! The HTTP client: single requests with a timeout, and connections for repeated requests with streams as responses.
//! Redirects are not followed.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address_guard::{AllowedServers, URL_FORM};
use super::client_error::{HttpClientError, REQUEST_TIMEOUT};
use super::server_trust::ServerVerification;
use gatewren_portable::{Secret, end_when_gone, end_when_stalled};

/// The timeout from the name lookup to the end of the handshake; after it the server counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may accept no data, or answer no keepalive probe, before the connection is closed. A call may
/// last for hours, but not on a server that lost power.
const STALLED: Duration = Duration::from_secs(30);

/// Reads and writes on a connection until it ends.
type ConnectionDriver = Pin<Box<dyn Future<Output = Result<(), hyper::Error>> + Send>>;

/// A URL, and how its server is reached and verified.
pub struct HttpClient {
    host: String,
    port: u16,
    servers: AllowedServers,
    /// `None` for plain HTTP.
    tls: Option<Arc<ClientConfig>>,
    /// The value of the `Host` header.
    authority: HeaderValue,
    path: Uri,
}

/// A connection to the server of a client, for requests to its URL.
pub struct HttpConnection {
    sender: http1::SendRequest<Full<Bytes>>,
    from: IpAddr,
    authority: HeaderValue,
    path: Uri,
}

/// A successful response.
#[derive(Debug)]
pub struct HttpReply {
    /// The server's address.
    pub from: IpAddr,
    /// Its body.
    pub body: Bytes,
}

impl HttpClient {
    /// Parses a URL, and prepares TLS.
    pub fn new(
        url: &str,
        servers: AllowedServers,
        verification: &ServerVerification,
    ) -> Result<Self, HttpClientError> {
        let invalid = || HttpClientError::Address(URL_FORM);
        let uri: Uri = url.parse().map_err(|_| invalid())?;
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid()),
        };
        let authority = uri.authority().ok_or_else(invalid)?;
        let host = authority.host();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || authority.as_str().contains('@') {
            return Err(invalid());
        }
        // A port above 65535 is no port to the parser, and would become the usual one.
        let is_bare = authority.as_str().ends_with(']') || authority.host() == authority.as_str();
        let port = match authority.port_u16() {
            Some(port) => port,
            None if !is_bare => return Err(invalid()),
            None if is_secure => 443,
            None => 80,
        };
        servers.check_url(is_secure, port)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            host: host.to_owned(),
            port,
            servers,
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| invalid())?,
            path: path.parse().map_err(|_| invalid())?,
            tls: is_secure.then(|| verification.config()).transpose()?,
        })
    }

    /// Sends one request; any status other than success is an error. A response body of more than `most` bytes is
    /// an error; if `None`, the body is not read.
    pub async fn ask(
        &self,
        request: Request<Bytes>,
        most: Option<usize>,
    ) -> Result<HttpReply, HttpClientError> {
        let reply = timeout(REQUEST_TIMEOUT, self.exchange(request, most)).await;
        reply.unwrap_or(Err(HttpClientError::Slow))
    }

    async fn exchange(
        &self,
        request: Request<Bytes>,
        most: Option<usize>,
    ) -> Result<HttpReply, HttpClientError> {
        let (mut connection, mut driver) = self.open().await?;
        // Both futures end with this one, however it ends.
        let reply = async {
            let response = connection.ask(request).await?;
            if !response.status().is_success() {
                return Err(HttpClientError::Status(response.status()));
            }
            let body = match most {
                Some(most) => Limited::new(response.into_body(), most).collect().await,
                None => Ok(Collected::default()),
            };
            let body = body.map_err(|_| HttpClientError::Body)?.to_bytes();
            Ok(HttpReply {
                from: connection.from,
                body,
            })
        };
        tokio::pin!(reply);
        tokio::select! {
            reply = &mut reply => reply,
            // The response may have arrived completely before the connection broke.
            ended = &mut driver => match reply.await {
                reply @ (Ok(_) | Err(HttpClientError::Status(_))) => reply,
                Err(cause) => ended.map_err(HttpClientError::from).and(Err(cause)),
            },
        }
    }

    /// Connects. The connection lasts as long as this value or the body of a response is held.
    pub async fn connect(&self) -> Result<HttpConnection, HttpClientError> {
        let opened = timeout(CONNECT_TIMEOUT, self.open()).await;
        let (connection, driver) =
            opened.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        tokio::spawn(async move {
            if let Err(cause) = driver.await {
                tracing::debug!(%cause, "a connection to the server has ended");
            }
        });
        Ok(connection)
    }

    async fn open(&self) -> Result<(HttpConnection, ConnectionDriver), HttpClientError> {
        let stream = self.servers.connect(&self.host, self.port).await?;
        let from = stream.peer_addr()?.ip().to_canonical();
        let _ = stream.set_nodelay(true);
        // Older kernels ignore these options and wait longer.
        let _ = end_when_stalled(&stream, STALLED);
        let _ = end_when_gone(&stream, STALLED);
        let (sender, driver) = if let Some(tls) = &self.tls {
            let name = ServerName::try_from(self.host.clone());
            let words = "the host is neither a name nor an address";
            let name = name.map_err(|_| HttpClientError::Address(words))?;
            let stream = TlsConnector::from(tls.clone()).connect(name, stream);
            handshake(stream.await?).await?
        } else {
            self.servers.check_plain(from)?;
            handshake(stream).await?
        };
        let connection = HttpConnection {
            sender,
            from,
            authority: self.authority.clone(),
            path: self.path.clone(),
        };
        Ok((connection, driver))
    }
}

async fn handshake(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
) -> Result<(http1::SendRequest<Full<Bytes>>, ConnectionDriver), hyper::Error> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    Ok((sender, Box::pin(connection)))
}

impl HttpConnection {
    /// Whether a request can be sent now.
    pub fn is_free(&self) -> bool {
        self.sender.is_ready() && !self.sender.is_closed()
    }

    /// Sends a request that has a method, its own headers and a body, which is JSON.
    pub async fn ask(
        &mut self,
        mut request: Request<Bytes>,
    ) -> Result<Response<Incoming>, HttpClientError> {
        let json = HeaderValue::from_static("application/json");
        let agent = HeaderValue::from_static(concat!("gatewren/", env!("CARGO_PKG_VERSION")));
        let mut headers = HeaderMap::new();
        headers.insert(HOST, self.authority.clone());
        headers.insert(ACCEPT, json.clone());
        headers.insert(USER_AGENT, agent);
        if !request.body().is_empty() {
            headers.insert(CONTENT_TYPE, json);
        }
        headers.extend(std::mem::take(request.headers_mut()));
        *request.headers_mut() = headers;
        *request.uri_mut() = self.path.clone();
        self.sender.ready().await.map_err(io::Error::other)?;
        let response = self.sender.try_send_request(request.map(Full::new)).await;
        response.map_err(|mut error| match error.take_message() {
            Some(_) => io::Error::other(error.into_error()).into(),
            None => error.into_error().into(),
        })
    }
}

/// Returns the header value for a token; `None` if it contains characters that a header cannot contain.
pub fn bearer(token: &Secret) -> Option<HeaderValue> {
    let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.expose())).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_names_is_asked_on_port_443_alone() {
        for url in [
            "https://1.1.1.1:22/x",
            "https://1.1.1.1:8443/x",
            "http://1.1.1.1/x",
        ] {
            let servers = AllowedServers::PublicInternet(|| Ok(Vec::new()));
            let client = HttpClient::new(url, servers, &ServerVerification::Machine);
            let refused = client.err().unwrap().to_string();
            assert!(refused.contains("port 443"), "{refused}");
        }
    }

    #[test]
    fn a_port_that_does_not_exist_is_not_replaced_by_the_usual_one() {
        let new = |url: &str| {
            let servers = AllowedServers::Https;
            HttpClient::new(url, servers, &ServerVerification::Machine).map(|client| client.port)
        };
        for bad in [
            "https://a.lan:84430/",
            "https://a.lan:/",
            "https://[::1]:70000/",
        ] {
            assert!(
                matches!(new(bad), Err(HttpClientError::Address(URL_FORM))),
                "{bad}"
            );
        }
        for (url, port) in [
            ("https://a.lan/", 443),
            ("https://[::1]/", 443),
            ("https://[::1]:8443/", 8443),
        ] {
            assert_eq!(new(url).unwrap(), port, "{url}");
        }
    }

    #[test]
    fn only_some_clients_use_plain_http() {
        let new = |servers| {
            let url = "http://127.0.0.1/x";
            HttpClient::new(url, servers, &ServerVerification::Machine)
        };
        assert!(new(AllowedServers::HttpsOrThisServer).is_ok());
        assert!(new(AllowedServers::HttpsOrLocalNetwork).is_ok());
        for servers in [
            AllowedServers::Https,
            AllowedServers::At(([127, 0, 0, 1], 80).into()),
        ] {
            assert!(matches!(new(servers), Err(HttpClientError::Address(_))));
        }
    }
}
