//! What the service manager gives a process at its start: sockets that it opened (`sd_listen_fds(3)`).

use std::os::fd::{AsFd, FromRawFd as _, OwnedFd};

use nix::sys::socket::{AddressFamily, SockaddrLike as _, SockaddrStorage, getsockname};
use nix::sys::socket::{getsockopt, sockopt};

/// A socket that was handed over to this process.
#[derive(Debug)]
pub struct HandedOver {
    /// What its unit calls it (`FileDescriptorName=`); the unit's own name unless it says otherwise.
    pub name: String,
    /// The socket.
    pub socket: OwnedFd,
}

/// The sockets that were handed over to this process; none when nobody did.
///
/// Call it once: it takes ownership of them.
pub fn inherited_sockets() -> Vec<HandedOver> {
    let Ok(numbers) = sd_notify::listen_fds() else {
        return Vec::new();
    };
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut take = |fd| {
        #[expect(
            unsafe_code,
            reason = "a descriptor that was handed over comes as a number"
        )]
        // SAFETY: LISTEN_PID names this process, so the number is open and nobody here owns it yet.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        HandedOver {
            name: names.next().unwrap_or("unknown").to_owned(),
            socket,
        }
    };
    numbers.map(&mut take).collect()
}

/// Whether connections over IP can be accepted from a socket.
pub fn accepts_over_ip(socket: impl AsFd) -> bool {
    let listens = getsockopt(&socket, sockopt::AcceptConn).unwrap_or(false);
    let bound = getsockname::<SockaddrStorage>(std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd()));
    let family = bound.ok().and_then(|address| address.family());
    listens && matches!(family, Some(AddressFamily::Inet | AddressFamily::Inet6))
}

/// Whether systemd started this very process, and not one that it descends from.
pub fn started_by_systemd() -> bool {
    // Inherited by everything that a service starts; the process id says whether we are it.
    let ours = std::env::var("SYSTEMD_EXEC_PID")
        .map_or(true, |started| started == std::process::id().to_string());
    ours && std::env::var_os("INVOCATION_ID").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_a_listening_tcp_socket_serves_over_ip() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(accepts_over_ip(&tcp));
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(!accepts_over_ip(&udp));
        let path = std::env::temp_dir().join(format!("gatewren-ip-{}", std::process::id()));
        let unix = UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!accepts_over_ip(&unix));
    }
}
