//! The anchor: hyper alone. It reads a request's body and answers a fixed one; it understands nothing.

use std::convert::Infallible;
use std::io::{Read as _, Write as _, stdin, stdout};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

use crate::Error;

/// Serves on a free port of loopback, which it prints, until standard input closes.
pub async fn serve(size: usize, cert: Option<&Path>, key: Option<&Path>) -> Result<(), Error> {
    let tls = match (cert, key) {
        (Some(cert), Some(key)) => Some(acceptor(cert, key)?),
        _ => None,
    };
    let body = body(size);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(stdout(), "{}", listener.local_addr()?.port())?;
    let (closed, mut end) = oneshot::channel();
    std::thread::spawn(move || closed.send(stdin().read_to_end(&mut Vec::new())));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                tokio::spawn(connection(accepted?.0, tls.clone(), body.clone()));
            }
            _ = &mut end => return Ok(()),
        }
    }
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// JSON of exactly this size, or of the least that is JSON.
fn body(size: usize) -> Bytes {
    let frame = r#"{"fixed":""}"#.len();
    format!(
        r#"{{"fixed":"{}"}}"#,
        "x".repeat(size.saturating_sub(frame))
    )
    .into()
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, body: Bytes) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => answer_all(stream, body).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                answer_all(stream, body).await;
            }
        }
    }
}

async fn answer_all(stream: impl AsyncRead + AsyncWrite + Unpin, body: Bytes) {
    let service = service_fn(move |request| {
        let body = body.clone();
        async move { Ok::<_, Infallible>(answer(request, body).await) }
    });
    // A client that goes away in the middle is the client's business.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, body: Bytes) -> Response<Full<Bytes>> {
    let read = request.into_body().collect().await;
    let mut response = Response::new(Full::new(body));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    if read.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response
}
