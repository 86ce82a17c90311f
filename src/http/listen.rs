//! Sockets: bound by us or handed over by systemd, and the connections that they accept.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::sys::{HandedOver, accepts_over_ip, end_when_stalled};

/// How long to wait when the machine is out of descriptors or memory, instead of asking in a loop.
const BACK_OFF: Duration = Duration::from_millis(100);

/// A client that takes nothing of what was sent to it for so long is gone, or wants to be in the way: the kernel
/// ends its connection.
const STALLED: Duration = Duration::from_mins(2);

/// A socket that cannot be listened on.
#[derive(Debug)]
pub enum ListenError {
    /// An address that could not be bound.
    Address {
        /// Which.
        address: SocketAddr,
        /// Why.
        cause: io::Error,
    },
    /// A socket of systemd's that serves no connections over IP, by its name.
    Unfit(String),
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, cause) = match self {
            Self::Address { address, cause } => (address, cause),
            Self::Unfit(name) => {
                return write!(
                    f,
                    "systemd hands over a socket that takes no TCP connections ({name}); in its .socket unit name \
                     ports or addresses with ListenStream=, and no paths"
                );
            }
        };
        match cause.kind() {
            io::ErrorKind::AddrInUse => write!(
                f,
                "another program listens on {address}; stop it, or choose another address with --listen \
                 (find it with: ss -ltnp 'sport = :{}')",
                address.port()
            ),
            io::ErrorKind::PermissionDenied => write!(
                f,
                "not allowed to listen on {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE"
            ),
            io::ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "this box has no address {}; choose one of its own with --listen",
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
/// When it is of another kind.
pub fn inherit(handed_over: HandedOver) -> Result<TcpListener, ListenError> {
    let HandedOver { name, socket } = handed_over;
    if !accepts_over_ip(&socket) {
        return Err(ListenError::Unfit(name));
    }
    let socket = std::net::TcpListener::from(socket);
    let ready = socket
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(socket));
    ready.map_err(|_| ListenError::Unfit(name))
}

/// A connection that a socket has accepted.
pub struct AcceptedConnection {
    /// The connection.
    pub stream: TcpStream,
    /// Its other side.
    pub peer: SocketAddr,
}

/// Accepts the next connection. Cancel safe.
pub async fn accept(listener: &TcpListener) -> AcceptedConnection {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // A reply is one write; waiting for more would cost 40 ms a call.
                let _ = stream.set_nodelay(true);
                // Without it such a connection lasts as long as its client likes, and no longer matters
                // than that: it is one under the cap.
                let _ = end_when_stalled(&stream, STALLED);
                return AcceptedConnection { stream, peer };
            }
            Err(cause) => {
                tracing::warn!(%cause, "cannot accept a connection");
                tokio::time::sleep(BACK_OFF).await;
            }
        }
    }
}
