//! Addresses of network interfaces, and timeouts for connections whose other side does not respond.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundAddress {
    /// The interface's name; an old alias has its own name, such as `eth0:1`.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix in bits.
    pub prefix: u8,
}

/// Lets the kernel close a TCP connection when sent data has not been acknowledged for this time
/// (`TCP_USER_TIMEOUT`, tcp(7)). Other systems have no such option, and keep their own timeout.
pub fn end_when_stalled<'s, S>(socket: &'s S, after: Duration) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    #[cfg(target_os = "linux")]
    SockRef::from(socket).set_tcp_user_timeout(Some(after))?;
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, after);
    Ok(())
}

/// Lets the kernel probe an idle TCP connection, and close it when no answer came for this time (`SO_KEEPALIVE`,
/// tcp(7)).
pub fn end_when_gone<'s, S>(socket: &'s S, after: Duration) -> io::Result<()>
where
    SockRef<'s>: From<&'s S>,
{
    let third = (after / 3).max(Duration::from_secs(1));
    let probes = TcpKeepalive::new().with_time(third).with_interval(third);
    SockRef::from(socket).set_tcp_keepalive(&probes.with_retries(2))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn who_takes_nothing_is_hung_up_on() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut writer, _) = listener.accept().unwrap();
        end_when_stalled(&writer, Duration::from_millis(200)).unwrap();
        // Only a failing test, whose connection is not closed, waits this long.
        writer
            .set_write_timeout(Some(Duration::from_mins(2)))
            .unwrap();
        let bytes = vec![0; 1 << 16];
        let ended = loop {
            match writer.write(&bytes) {
                // The children of other tests end, and the kernel looks for a thread that takes the signal.
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => break cause,
                Ok(_) => {}
            }
        };
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut, "{ended}");
        drop(reader);
    }
}
