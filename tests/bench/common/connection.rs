//! A keep-alive connection of the client: one request out, one whole reply in.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::Error;

/// The maximum length of a reply's head; a longer one is an error.
const MAX_HEAD: usize = 16 * 1024;

/// The common interface of both kinds of connection.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The address of a server, and how to connect to it.
#[derive(Clone)]
pub struct Address {
    socket: SocketAddr,
    tls: Option<TlsConnector>,
    room: Option<usize>,
}

impl Address {
    /// Returns an address for plain HTTP.
    pub fn plain(socket: SocketAddr) -> Self {
        Self {
            socket,
            tls: None,
            room: None,
        }
    }

    /// Returns an address for TLS, with the certificate authority in this PEM file.
    pub fn tls(socket: SocketAddr, authority: &Path) -> Result<Self, Error> {
        Self::tls_of(socket, authority, Resumption::default())
    }

    /// Does the same, but each handshake is a full one.
    pub fn tls_anew(socket: SocketAddr, authority: &Path) -> Result<Self, Error> {
        Self::tls_of(socket, authority, Resumption::disabled())
    }

    fn tls_of(socket: SocketAddr, authority: &Path, resumption: Resumption) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority)? {
            roots.add(certificate?)?;
        }
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = resumption;
        let tls = Some(TlsConnector::from(Arc::new(config)));
        Ok(Self {
            socket,
            tls,
            room: None,
        })
    }

    /// Sets the size of the receive buffer, in bytes, which the kernel chooses otherwise.
    #[must_use]
    pub fn with_room(self, bytes: usize) -> Self {
        let room = Some(bytes);
        Self { room, ..self }
    }

    /// Returns address and port, in the form of a Host header.
    pub fn socket(&self) -> SocketAddr {
        self.socket
    }

    /// Connects.
    pub async fn open(&self) -> Result<Connection, Error> {
        let tcp = if self.socket.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        if let Some(bytes) = self.room {
            // Only root may exceed the system's maximum; other users get the maximum.
            if setsockopt(&tcp, RcvBufForce, &bytes).is_err() {
                setsockopt(&tcp, RcvBuf, &bytes)?;
            }
        }
        let tcp = tcp.connect(self.socket).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(tcp),
            Some(tls) => Box::new(tls.connect(self.socket.ip().into(), tcp).await?),
        };
        let input = Vec::with_capacity(MAX_HEAD);
        Ok(Connection { stream, input })
    }
}

/// An open connection.
pub struct Connection {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
}

/// A whole reply.
#[derive(Debug)]
pub struct Reply<'a> {
    /// The status line and the headers.
    head: &'a str,
    /// The body.
    pub body: &'a [u8],
}

impl Connection {
    /// Sends a request, head and body, and reads the whole reply to it.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Reply<'_>, Error> {
        let (head, end) = self.begin(request).await?;
        if self.reply(head, end)?.header("transfer-encoding") == Some("chunked") {
            self.join_chunks(end).await?;
            return self.reply(head, end);
        }
        let length = self.reply(head, end)?.length()?;
        while self.input.len() < end + length {
            self.more().await?;
        }
        if self.input.len() > end + length {
            return Err("bytes after the end of a reply".into());
        }
        self.reply(head, end)
    }

    /// Reads a chunked body (RFC 9112, 7.1) to its end, and joins the chunks in place.
    async fn join_chunks(&mut self, begin: usize) -> Result<(), Error> {
        let (mut read, mut joined) = (begin, begin);
        loop {
            let rest = self.input.get(read..).unwrap_or_default();
            let Some(line) = find(rest, b"\r\n") else {
                self.more().await?;
                continue;
            };
            let size = str::from_utf8(rest.get(..line).unwrap_or_default())?;
            let size = usize::from_str_radix(size, 16)?;
            let from = read + line + 2;
            while self.input.len() < from + size + 2 {
                self.more().await?;
            }
            self.input.copy_within(from..from + size, joined);
            joined += size;
            read = from + size + 2;
            if size == 0 {
                self.input.truncate(joined);
                return Ok(());
            }
        }
    }

    /// Returns the bytes of the last reply.
    pub fn reply_bytes(&self) -> &[u8] {
        &self.input
    }

    /// Sends a request whose reply is a stream of events.
    pub async fn listen(mut self, request: &[u8]) -> Result<Events, Error> {
        let (head, end) = self.begin(request).await?;
        let reply = self.reply(head, end)?;
        let chunked = reply.header("transfer-encoding") == Some("chunked");
        if reply.status() != "200" || !chunked {
            return Err(format!("no stream: {}", String::from_utf8_lossy(&self.input)).into());
        }
        self.input.drain(..end);
        let text = Vec::new();
        let connection = self;
        Ok(Events { connection, text })
    }

    /// Sends a request and reads the reply's head; returns its end without the empty line, and with it.
    async fn begin(&mut self, request: &[u8]) -> Result<(usize, usize), Error> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.input.clear();
        loop {
            self.more().await?;
            if let Some(at) = find(&self.input, b"\r\n\r\n") {
                return Ok((at, at + 4));
            }
            if self.input.len() > MAX_HEAD {
                return Err("the head of a reply has no end".into());
            }
        }
    }

    async fn more(&mut self) -> Result<(), Error> {
        if self.stream.read_buf(&mut self.input).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(())
    }

    fn reply(&self, head: usize, end: usize) -> Result<Reply<'_>, Error> {
        let head = str::from_utf8(self.input.get(..head).unwrap_or_default())?;
        let body = self.input.get(end..).unwrap_or_default();
        Ok(Reply { head, body })
    }
}

impl<'a> Reply<'a> {
    /// Returns the status code, as text.
    pub fn status(&self) -> &'a str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&'a str> {
        self.head.split("\r\n").skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Returns the length of the body. A plain result is one JSON object of known length; an event stream here is an
    /// error. A status without a body has no length either.
    fn length(&self) -> Result<usize, Error> {
        match self.header("content-length") {
            Some(length) => Ok(length.parse()?),
            None if self.header("transfer-encoding").is_none() => Ok(0),
            None => Err(format!("a reply without content-length: {}", self.head).into()),
        }
    }
}

/// A stream of events (WHATWG HTML, 9.2) in chunks (RFC 9112, 7.1).
pub struct Events {
    connection: Connection,
    /// The data of the chunks that is not yet a whole event.
    text: Vec<u8>,
}

impl Events {
    /// Returns the next event as it was sent; skips comments.
    pub async fn next(&mut self) -> Result<String, Error> {
        loop {
            while let Some(at) = find(&self.text, b"\n\n") {
                let event: Vec<u8> = self.text.drain(..at + 2).collect();
                if event.first() != Some(&b':') {
                    return Ok(String::from_utf8(event)?);
                }
            }
            while !self.chunk()? {
                self.connection.more().await?;
            }
        }
    }

    /// Appends the next chunk to the text; false if it is not complete yet.
    fn chunk(&mut self) -> Result<bool, Error> {
        let input = &mut self.connection.input;
        let Some(at) = find(input, b"\r\n") else {
            return Ok(false);
        };
        let size = str::from_utf8(input.get(..at).unwrap_or_default())?;
        let size = usize::from_str_radix(size, 16)?;
        if size == 0 {
            return Err("the server ended a stream".into());
        }
        let (from, to) = (at + 2, at + 2 + size);
        let Some(data) = input.get(from..to).filter(|_| input.len() >= to + 2) else {
            return Ok(false);
        };
        self.text.extend_from_slice(data);
        input.drain(..to + 2);
        Ok(true)
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}
