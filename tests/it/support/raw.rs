//! A TLS socket for bytes that no real client sends.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::machine::IN_TIME;

/// An open socket.
pub struct RawSocket(StreamOwned<ClientConnection, TcpStream>);

impl RawSocket {
    pub fn open(address: SocketAddr, config: ClientConfig) -> Self {
        Self::over(TcpStream::connect(address).unwrap(), config)
    }

    /// Opens a socket over an existing connection.
    pub fn over(socket: TcpStream, config: ClientConfig) -> Self {
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into());
        let tls = ClientConnection::new(Arc::new(config), name).unwrap();
        socket.set_read_timeout(Some(IN_TIME)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self(StreamOwned::new(tls, socket))
    }

    /// Returns the protocol that the server has chosen; known after the first write.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.0.conn.alpn_protocol()
    }

    /// Writes bytes; false if the server has already disconnected, which is not an error.
    pub fn say(&mut self, bytes: &[u8]) -> bool {
        let said = self.0.write_all(bytes).and_then(|()| self.0.flush());
        said.is_ok()
    }

    /// Returns the next bytes; `None` if the server has disconnected.
    pub fn hear(&mut self) -> Option<Vec<u8>> {
        let mut part = vec![0; 4096];
        match self.0.read(&mut part) {
            Ok(0) | Err(_) => None,
            Ok(length) => {
                part.truncate(length);
                Some(part)
            }
        }
    }

    /// Returns everything up to the server's disconnect.
    pub fn all(&mut self) -> String {
        let bytes: Vec<u8> = std::iter::from_fn(|| self.hear()).flatten().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns whether the server disconnects in time.
    pub fn ends(&mut self) -> bool {
        let mut part = [0; 4096];
        loop {
            match self.0.read(&mut part) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(cause) => {
                    let waited = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                    return !waited.contains(&cause.kind());
                }
            }
        }
    }

    /// Sends the end of the stream (`close_notify`).
    pub fn hang_up(&mut self) {
        self.0.conn.send_close_notify();
        let _ = self.0.flush();
    }

    /// Returns the status of the next response and its text; 0 if the server disconnected without one.
    pub fn answer(&mut self) -> (u16, String) {
        let mut bytes = Vec::new();
        while let Some(part) = self.hear() {
            bytes.extend(part);
            if is_whole(&bytes) {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        (status.unwrap_or(0), text)
    }
}

/// Returns whether the head and as many body bytes as it declares have arrived.
fn is_whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let declared = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let declared = declared.map_or(0, |length| length.trim().parse().unwrap());
    body.len() >= declared
}
