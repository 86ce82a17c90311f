//! Fetches one small document of another server, over HTTPS or from this box itself.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderValue, USER_AGENT};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// From looking the name up to the last byte; then it has failed.
const WITHIN: Duration = Duration::from_secs(10);

/// Why there is no document.
#[derive(Debug)]
pub enum FetchError {
    /// The address is none that is fetched.
    Address(&'static str),
    /// No connection, or it broke.
    Connection(io::Error),
    /// What was said is not HTTP.
    Http(hyper::Error),
    /// It was refused.
    Status(StatusCode),
    /// It is larger than it may be, or broke off.
    Body,
    /// It took longer than it may.
    Slow,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(words) => f.write_str(words),
            Self::Connection(cause) => write!(f, "there is no connection to it: {cause}"),
            Self::Http(cause) => write!(f, "it does not speak HTTP: {cause}"),
            Self::Status(status) => write!(f, "it answered {status} and not 200"),
            Self::Body => f.write_str("its answer is too large, or broke off"),
            Self::Slow => write!(f, "it did not answer within {} s", WITHIN.as_secs()),
        }
    }
}

impl std::error::Error for FetchError {}

impl From<io::Error> for FetchError {
    fn from(cause: io::Error) -> Self {
        Self::Connection(cause)
    }
}

impl From<hyper::Error> for FetchError {
    fn from(cause: hyper::Error) -> Self {
        Self::Http(cause)
    }
}

/// Fetches a document of at most so many bytes. HTTPS is trusted as the box trusts it; plain HTTP goes no further
/// than to this box. Redirections are not followed.
pub async fn fetch(address: &str, most: usize) -> Result<Bytes, FetchError> {
    let fetched = tokio::time::timeout(WITHIN, fetched(address, most, trusted));
    fetched.await.unwrap_or(Err(FetchError::Slow))
}

async fn fetched(
    address: &str,
    most: usize,
    trusted: impl FnOnce() -> RootCertStore,
) -> Result<Bytes, FetchError> {
    let none = || FetchError::Address("the address is not of the form https://host/path");
    let uri: Uri = address.parse().map_err(|_| none())?;
    let secure = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err(none()),
    };
    let host = uri.host().ok_or_else(none)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let stream = TcpStream::connect((host, port)).await?;
    if secure {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| none())?;
        let stream = TlsConnector::from(trusting(trusted())?)
            .connect(name, stream)
            .await?;
        ask(stream, &uri, most).await
    } else if stream.peer_addr()?.ip().to_canonical().is_loopback() {
        ask(stream, &uri, most).await
    } else {
        let words = "plain http:// is only for this box itself; use https://";
        Err(FetchError::Address(words))
    }
}

/// What the box trusts now; read anew each time, because it is seldom.
fn trusted() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn trusting(roots: RootCertStore) -> io::Result<Arc<ClientConfig>> {
    if roots.is_empty() {
        let words = "the box trusts no certificate authority; install ca-certificates";
        return Err(io::Error::other(words));
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = config.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

async fn ask(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: &Uri,
    most: usize,
) -> Result<Bytes, FetchError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Both end with this future, however it ends.
    let answer = async {
        let response = sender.send_request(request(uri)?).await?;
        if response.status() != StatusCode::OK {
            return Err(FetchError::Status(response.status()));
        }
        let body = Limited::new(response.into_body(), most).collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|_| FetchError::Body)
    };
    tokio::pin!(connection);
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = &mut connection => {
            ended?;
            answer.await
        }
    }
}

fn request(uri: &Uri) -> Result<Request<Empty<Bytes>>, FetchError> {
    let none = |_| FetchError::Address("the address holds what no request may");
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Request::get(path)
        .header(
            HOST,
            HeaderValue::from_str(authority).map_err(|e| none(e.into()))?,
        )
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("gatewren/", env!("CARGO_PKG_VERSION")))
        .body(Empty::new())
        .map_err(none)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::subject::Subjects;
    use super::super::tls::{Tls, TlsSource};
    use super::*;
    use crate::sys::Scratch;

    /// Answers one request with these bytes; what was asked.
    async fn fetched_from(answer: &'static str, most: usize) -> (Result<Bytes, String>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/keys?a=b", listener.local_addr().unwrap());
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(socket.read_u8().await.unwrap());
            }
            let _ = socket.write_all(answer.as_bytes()).await;
            String::from_utf8(asked).unwrap()
        };
        let (fetched, asked) = tokio::join!(fetch(&address, most), server);
        (fetched.map_err(|error| error.to_string()), asked)
    }

    #[tokio::test]
    async fn a_small_document_is_fetched() {
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";
        let (fetched, asked) = fetched_from(answer, 3).await;
        assert_eq!(fetched.unwrap(), "yes");
        assert!(
            asked.starts_with("GET /keys?a=b HTTP/1.1\r\nhost: 127.0.0.1:"),
            "{asked}"
        );
        let until_the_end = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nyes";
        assert_eq!(fetched_from(until_the_end, 3).await.0.unwrap(), "yes");
    }

    #[tokio::test]
    async fn everything_else_is_an_error() {
        for (answer, words) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nlong",
                "too large",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nye",
                "broke off",
            ),
            (
                "HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
                "302",
            ),
            ("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", "503"),
            ("hello\r\n\r\n", "HTTP"),
            ("", "HTTP"),
        ] {
            let (fetched, _) = fetched_from(answer, 3).await;
            let said = fetched.unwrap_err();
            assert!(said.contains(words), "{answer:?}: {said}");
        }
    }

    #[tokio::test]
    async fn only_https_goes_elsewhere() {
        for address in [
            "",
            "keys.json",
            "ftp://127.0.0.1/",
            "/etc/passwd",
            "http://",
        ] {
            let error = fetch(address, 9).await.unwrap_err();
            assert!(
                matches!(error, FetchError::Address(_)),
                "{address}: {error}"
            );
        }
    }

    #[tokio::test]
    async fn https_is_as_good_as_who_signs_for_it() {
        let made = |scratch: &Scratch| {
            let subjects = Subjects::default();
            let directory = scratch.join("tls");
            Tls::load(TlsSource::Own {
                directory,
                subjects,
            })
            .unwrap()
        };
        let roots = |tls: &Tls| {
            let pem = std::fs::read(tls.ca().unwrap()).unwrap();
            let mut roots = RootCertStore::empty();
            roots
                .add(CertificateDer::from_pem_slice(&pem).unwrap())
                .unwrap();
            roots
        };
        let (scratch, other) = (Scratch::new(), Scratch::new());
        let (tls, other) = (made(&scratch), made(&other));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let acceptor = tls.acceptor();
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(socket).await else {
                    continue;
                };
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    asked.push(stream.read_u8().await.unwrap());
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nyes";
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            }
        });
        let at = |host: &str| format!("https://{host}:{port}/keys");
        let good = fetched(&at("localhost"), 3, || roots(&tls)).await;
        assert_eq!(good.unwrap(), "yes");
        let good = fetched(&at("127.0.0.1"), 3, || roots(&tls)).await;
        assert_eq!(good.unwrap(), "yes");
        for trusted in [roots(&other), RootCertStore::empty()] {
            let refused = fetched(&at("localhost"), 3, || trusted).await;
            assert!(
                matches!(refused, Err(FetchError::Connection(_))),
                "{refused:?}"
            );
        }
    }
}
