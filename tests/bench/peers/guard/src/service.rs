//! The connections: TLS, then the token, then the peer's own service, then the row.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use subtle::ConstantTimeEq as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio_rustls::rustls::{ServerConfig, version};
use tower_service::Service as _;

use crate::calls::{self, Row};
use crate::names::names;
use crate::{Error, Guard};

/// What all connections share.
struct Shared {
    app: Router,
    /// The only accepted value of the header.
    authorization: Vec<u8>,
    rows: Sender<Row>,
}

impl Guard {
    /// Serves the peer's HTTP service on this port of loopback.
    pub async fn serve(self, port: u16, app: Router) -> Result<(), Error> {
        let tls = TlsAcceptor::from(Arc::new(self.tls()?));
        let shared = Arc::new(Shared {
            app,
            authorization: format!("Bearer {}", self.token).into_bytes(),
            rows: calls::start(&self.database)?,
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (stream, client) = listener.accept().await?;
            tokio::spawn(connection(stream, client, tls.clone(), Arc::clone(&shared)));
        }
    }

    /// Returns the settings of TLS: those of the anchor, whose connections with the same client are TLS 1.3 too.
    fn tls(&self) -> Result<ServerConfig, Error> {
        let chain = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(|chain| chain.collect::<Result<Vec<_>, _>>())
            .map_err(|cause| format!("{}: {cause}", self.certificate.display()))?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|cause| format!("{}: {cause}", self.key.display()))?;
        // Named, because the SDKs bring other cryptography into the same build.
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13])?
            .with_no_client_auth();
        Ok(config.with_single_cert(chain, key)?)
    }
}

async fn connection(stream: TcpStream, client: SocketAddr, tls: TlsAcceptor, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.answer(request, client).await) }
    });
    // A client that disconnects early is not an error here.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Shared {
    async fn answer(&self, request: Request<Incoming>, client: SocketAddr) -> Response<Body> {
        if !self.admits(request.headers()) {
            let mut response = status(StatusCode::UNAUTHORIZED);
            let bearer = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
            return response;
        }
        // Before the call runs, as in gatewren: without a place for its row there is no call.
        let Ok(place) = self.rows.reserve().await else {
            return status(StatusCode::SERVICE_UNAVAILABLE);
        };
        let Some((names, request)) = names(request).await else {
            return status(StatusCode::PAYLOAD_TOO_LARGE);
        };
        let response = match self.app.clone().call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        place.send(Row {
            at: SystemTime::now(),
            method: names.method,
            tool: names.tool,
            client,
            outcome: response.status().as_u16(),
        });
        response
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        given.is_some_and(|given| given.ct_eq(&self.authorization).into())
    }
}

fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}
