//! Sockets that the service manager opened and passed to this process (`sd_listen_fds(3)`).

use std::os::fd::{AsFd, FromRawFd as _, OwnedFd};

use nix::sys::socket::{AddressFamily, SockaddrLike as _, SockaddrStorage, getsockname};
use nix::sys::socket::{getsockopt, sockopt};

/// A socket that was passed to this process.
#[derive(Debug)]
pub struct InheritedSocket {
    /// Its name in the unit (`FileDescriptorName=`); by default the name of the unit.
    pub name: String,
    /// The socket.
    pub socket: OwnedFd,
}

/// Returns the sockets that were passed to this process; empty if there are none.
///
/// Call it once: it takes ownership of them.
pub fn inherited_sockets() -> Vec<InheritedSocket> {
    let Ok(numbers) = sd_notify::listen_fds() else {
        return Vec::new();
    };
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut take = |fd| {
        #[expect(
            unsafe_code,
            reason = "a descriptor that systemd passed on is a bare number"
        )]
        // SAFETY: LISTEN_PID names this process, so the number is open and nothing here owns it yet.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        InheritedSocket {
            name: names.next().unwrap_or("unknown").to_owned(),
            socket,
        }
    };
    numbers.map(&mut take).collect()
}

/// Returns whether the socket listens and accepts connections over IP.
pub fn accepts_over_ip(socket: impl AsFd) -> bool {
    let listens = getsockopt(&socket, sockopt::AcceptConn).unwrap_or(false);
    let bound = getsockname::<SockaddrStorage>(std::os::fd::AsRawFd::as_raw_fd(&socket.as_fd()));
    let family = bound.ok().and_then(|address| address.family());
    listens && matches!(family, Some(AddressFamily::Inet | AddressFamily::Inet6))
}

/// Returns whether systemd started this process itself, not an ancestor of it.
pub fn started_by_systemd() -> bool {
    // All descendants of a service inherit it; the process id shows whether it means this process.
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
