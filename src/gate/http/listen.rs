//! Listening sockets, bound here or passed by systemd, and the connections that they accept.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use gatewren_base::sys::{InheritedSocket, accepts_over_ip, end_when_stalled};

/// How long to wait when the host is out of file descriptors or memory, instead of busy looping.
const BACK_OFF: Duration = Duration::from_millis(100);

/// A client that accepts no data for this long is gone or hostile: the kernel ends its connection.
const STALLED: Duration = Duration::from_mins(2);

/// A socket that cannot be listened on.
#[derive(Debug)]
pub enum ListenError {
    /// An address that could not be bound.
    Address {
        /// The address.
        address: SocketAddr,
        /// The cause.
        cause: io::Error,
    },
    /// A socket from systemd that does not accept IP connections, by its name.
    Unfit(String),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, cause) = match self {
            Self::Address { address, cause } => (address, cause),
            Self::Unfit(name) => {
                return write!(
                    f,
                    "the socket from systemd does not accept TCP connections ({name}); in its .socket unit, set \
                     ListenStream= to ports or addresses, not paths"
                );
            }
        };
        match cause.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "{address} is already in use by another program; stop it, or choose another address with \
                 --listen (find it with: ss -ltnp 'sport = :{}')",
                address.port()
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "permission denied to listen on {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE"
            ),
            io::ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "this server does not have the address {}; choose one of its own with --listen",
                    address.ip()
                )
            }
            _ => write!(f, "cannot listen on {address}: {cause}"),
        }
    }
}

impl std::error::Error for ListenError {}

/// Listens on an address.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| ListenError::Address { address, cause })
}

/// Takes over a listening socket that systemd has opened.
///
/// # Errors
/// When it is a socket of another kind.
pub fn inherit(handed_over: InheritedSocket) -> Result<TcpListener, ListenError> {
    let InheritedSocket { name, socket } = handed_over;
    if !accepts_over_ip(&socket) {
        return Err(ListenError::Unfit(name));
    }
    let socket = std::net::TcpListener::from(socket);
    let ready = socket
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(socket));
    ready.map_err(|_| ListenError::Unfit(name))
}

/// An accepted connection.
pub struct AcceptedConnection {
    /// The stream.
    pub stream: TcpStream,
    /// The client's address.
    pub peer: SocketAddr,
}

/// Accepts the next connection. Cancel safe.
pub async fn accept(listener: &TcpListener) -> AcceptedConnection {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // A response is one write; Nagle's algorithm would delay each call by 40 ms.
                let _ = stream.set_nodelay(true);
                // If this fails, the client keeps the connection as long as it wants. That is tolerable, because
                // the connection still counts towards the limit.
                let _ = end_when_stalled(&stream, STALLED);
                // A socket for both families names an IPv4 client as ::ffff:192.168.1.2 (RFC 4291, section 2.5.5.2).
                let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
                return AcceptedConnection { stream, peer };
            }
            Err(cause) => {
                tracing::warn!(%cause, "cannot accept a connection");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}
