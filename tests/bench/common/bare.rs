//! The anchor: plain hyper. It reads a request's body, without parsing it, and responds with a fixed one.
//!
//! A GET opens a stream of events. Each line on standard input, such as `280 10`, makes it send an event: the first
//! number is the size, the second the number of streams that get it, the oldest first.

use std::convert::Infallible;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

use super::Error;
use super::floor::{FLOOR, floor};

/// Serves on a free port of loopback, which it prints, until standard input closes.
pub async fn serve(size: usize, cert: Option<&Path>, key: Option<&Path>) -> Result<(), Error> {
    let tls = match (cert, key) {
        (Some(cert), Some(key)) => Some(acceptor(cert, key)?),
        _ => None,
    };
    let house = House {
        body: filled(size, r#"{"fixed":""#, r#""}"#),
        streams: Arc::default(),
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    writeln!(stdout(), "{}", listener.local_addr()?.port())?;
    let mut lines = lines();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                tokio::spawn(connection(accepted?.0, tls.clone(), house.clone()));
            }
            line = lines.recv() => match line {
                Some(line) => house.tell(&line)?,
                None => return Ok(()),
            },
        }
    }
}

/// The data that all connections share.
#[derive(Clone)]
struct House {
    body: Bytes,
    streams: Arc<Mutex<Vec<UnboundedSender<Bytes>>>>,
}

impl House {
    fn open(&self) -> Events {
        let (sender, events) = unbounded_channel();
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push(sender);
        Events(events)
    }

    fn tell(&self, line: &str) -> Result<(), Error> {
        let (size, streams) = line
            .split_once(' ')
            .ok_or("a line is a size and a number")?;
        let (size, many) = (size.parse()?, streams.parse()?);
        let event = filled(size, "data: ", "\n\n");
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.iter().take(many) {
            // A client that has disconnected gets no event.
            let _ = stream.send(event.clone());
        }
        Ok(())
    }
}

/// A body that is a stream of events.
pub struct Events(UnboundedReceiver<Bytes>);

impl hyper::body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let event = self.0.poll_recv(cx);
        event.map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Returns the lines of standard input, read by a separate thread.
fn lines() -> UnboundedReceiver<String> {
    let (sender, lines) = unbounded_channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor, Error> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns text of exactly this size between a beginning and an end; at least these two.
fn filled(size: usize, beginning: &str, end: &str) -> Bytes {
    let room = size.saturating_sub(beginning.len() + end.len());
    format!("{beginning}{}{end}", "x".repeat(room)).into()
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, house: House) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => answer_all(stream, house).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                answer_all(stream, house).await;
            }
        }
    }
}

async fn answer_all(stream: impl AsyncRead + AsyncWrite + Unpin, house: House) {
    let service = service_fn(move |request| {
        let house = house.clone();
        async move { Ok::<_, Infallible>(answer(request, house).await) }
    });
    // A client that disconnects early is not an error here.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, house: House) -> Response<Either<Full<Bytes>, Events>> {
    let listens = request.method() == Method::GET;
    if request.uri().path() == FLOOR {
        return floor(request).await;
    }
    let read = request.into_body().collect().await;
    let (body, kind) = if listens {
        (Either::Right(house.open()), "text/event-stream")
    } else {
        (Either::Left(Full::new(house.body)), "application/json")
    };
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    if read.is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    response
}
