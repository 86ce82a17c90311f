//! A client that trusts the server's own certificate authority, and a connection of this client.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion, version};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::raw::RawSocket;
use super::request::Request;
use super::session::Session;

/// Returns the runtime for the background tasks of all clients.
pub fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    })
}

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub token: String,
    /// Each client has its own source address, so that no test uses up the rate limit of another.
    source: Ipv4Addr,
    roots: Arc<RootCertStore>,
    tls: &'static SupportedProtocolVersion,
    http2: bool,
    receive_buffer: Option<u32>,
}

impl Client {
    pub fn new(address: SocketAddr, ca: &Path, token: &str) -> Self {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(ca).unwrap())
            .unwrap();
        Self {
            address,
            token: token.to_owned(),
            source: Self::next_source(),
            roots: Arc::new(roots),
            tls: &version::TLS13,
            http2: false,
            receive_buffer: None,
        }
    }

    fn next_source() -> Ipv4Addr {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 77, 0, 1)) + count)
    }

    /// Returns the address that it connects from.
    pub fn source(&self) -> Ipv4Addr {
        self.source
    }

    /// Returns the same client with another source address.
    pub fn elsewhere(&self) -> Self {
        Self {
            source: Self::next_source(),
            ..self.clone()
        }
    }

    pub fn http2(mut self) -> Self {
        self.http2 = true;
        self
    }

    /// Sets a small receive buffer, which fills soon if the test does not read.
    pub fn narrow(mut self) -> Self {
        self.receive_buffer = Some(4096);
        self
    }

    pub fn tls12(mut self) -> Self {
        self.tls = &version::TLS12;
        self
    }

    pub fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    pub fn is_http2(&self) -> bool {
        self.http2
    }

    /// Returns a request with only the token.
    pub fn request(&self, verb: &str, path: &str) -> Request {
        let bearer = format!("Bearer {}", self.token);
        Request::new(self, verb, path).header("authorization", &bearer)
    }

    /// Returns a POST to the endpoint with this message, unchanged.
    pub fn post(&self, message: Value) -> Request {
        self.request("POST", "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .message(message)
    }

    /// Returns a complete request of 2026-07-28.
    pub fn modern(&self, method: &str) -> Request {
        self.post(json!({
            "jsonrpc": "2.0", "id": 1, "method": method, "params": { "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            } }
        }))
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", method)
    }

    /// Returns a complete tool call of 2026-07-28.
    pub fn call(&self, tool: &str, arguments: Value) -> Request {
        self.modern("tools/call")
            .name(tool)
            .param("arguments", arguments)
    }

    /// Returns `initialize` with a version and nothing else.
    pub fn initialize(&self, version: &str) -> Request {
        self.post(json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": version, "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }
        }))
    }

    /// Opens a stateful session that is ready for requests.
    pub fn session(&self, version: &str) -> Session {
        Session::open(self, version)
    }

    /// Opens a session of a client that declares these capabilities.
    pub fn session_with(&self, version: &str, capabilities: Value) -> Session {
        let initialize = self.initialize(version);
        Session::opened_by(self, &initialize.param("capabilities", capabilities))
    }

    /// Opens a TLS socket for arbitrary bytes.
    pub fn raw(&self) -> RawSocket {
        RawSocket::open(self.address, self.tls_config())
    }

    /// Opens such a socket that offers HTTP/2 and HTTP/1.1.
    pub fn raw_of_either(&self) -> RawSocket {
        let mut config = self.tls_config();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        RawSocket::open(self.address, config)
    }

    /// Opens such a socket over an existing connection.
    pub fn raw_over(&self, socket: std::net::TcpStream) -> RawSocket {
        RawSocket::over(socket, self.tls_config())
    }

    /// Returns the certificate that the server presents to a new connection, as DER.
    pub fn certificate(&self) -> Vec<u8> {
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into());
        let mut tls = ClientConnection::new(Arc::new(self.tls_config()), name).unwrap();
        let mut socket = std::net::TcpStream::connect(self.address).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).unwrap();
        }
        tls.peer_certificates().unwrap()[0].to_vec()
    }

    fn tls_config(&self) -> ClientConfig {
        let mut config = ClientConfig::builder_with_protocol_versions(&[self.tls])
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        let protocol: &[u8] = if self.http2 { b"h2" } else { b"http/1.1" };
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Connection {
        self.try_connect().await.unwrap()
    }

    /// Opens a connection to a server that may be gone.
    pub async fn try_connect(&self) -> io::Result<Connection> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.bind((self.source, 0).into())?;
        let stream: TcpStream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into());
        let tls = TlsConnector::from(Arc::new(self.tls_config()));
        let stream = tls.connect(name, stream).await?;
        assert_eq!(
            stream.get_ref().1.protocol_version(),
            Some(self.tls.version)
        );
        let io = TokioIo::new(stream);
        if self.http2 {
            let handshake = http2::handshake(TokioExecutor::new(), io).await;
            let (sender, driver) = handshake.map_err(io::Error::other)?;
            let driver = tokio::spawn(async move { drop(driver.await) });
            let sender = Sender::Http2(sender);
            Ok(Connection { sender, driver })
        } else {
            let handshake = http1::handshake(io).await;
            let (sender, driver) = handshake.map_err(io::Error::other)?;
            let driver = tokio::spawn(async move { drop(driver.await) });
            let sender = Sender::Http1(sender);
            Ok(Connection { sender, driver })
        }
    }

    /// Opens a connection for several requests.
    pub fn connection(&self) -> Connection {
        runtime().block_on(self.connect())
    }
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// An open connection. Dropping it closes it, even with requests in flight.
pub struct Connection {
    sender: Sender,
    driver: JoinHandle<()>,
}

impl Connection {
    /// Sends one request and returns the head of its response.
    pub async fn send(
        &mut self,
        request: hyper::Request<Full<Bytes>>,
    ) -> hyper::Result<hyper::Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
            Sender::Http2(sender) => {
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }
}

impl Connection {
    /// Returns whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.driver.is_finished()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
