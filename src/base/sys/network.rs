//! The addresses of the network interfaces, and timeouts for connections whose other side does not respond.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::{SockaddrStorage, setsockopt, sockopt};

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

/// Returns every interface's IPv4 and IPv6 addresses, in the kernel's order (getifaddrs(3)).
pub fn interface_addresses() -> io::Result<Vec<FoundAddress>> {
    Ok(getifaddrs()?.filter_map(convert_address).collect())
}

/// Lets the kernel close a TCP connection when sent data has not been acknowledged for this time
/// (`TCP_USER_TIMEOUT`, tcp(7)).
pub fn end_when_stalled(socket: &impl AsFd, after: Duration) -> io::Result<()> {
    let ms = u32::try_from(after.as_millis()).unwrap_or(u32::MAX);
    Ok(setsockopt(socket, sockopt::TcpUserTimeout, &ms)?)
}

/// Lets the kernel probe an idle TCP connection, and close it when no answer came for this time (`SO_KEEPALIVE`,
/// tcp(7)).
pub fn end_when_gone(socket: &impl AsFd, after: Duration) -> io::Result<()> {
    let third = u32::try_from(after.as_secs() / 3)
        .unwrap_or(u32::MAX)
        .max(1);
    setsockopt(socket, sockopt::TcpKeepIdle, &third)?;
    setsockopt(socket, sockopt::TcpKeepInterval, &third)?;
    setsockopt(socket, sockopt::TcpKeepCount, &2)?;
    Ok(setsockopt(socket, sockopt::KeepAlive, &true)?)
}

fn convert_address(interface: InterfaceAddress) -> Option<FoundAddress> {
    let address = ip(&interface.address?)?;
    let ones = match interface.netmask.as_ref().and_then(ip) {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        // A network of one address.
        None if address.is_ipv4() => 32,
        None => 128,
    };
    Some(FoundAddress {
        interface: interface.interface_name,
        address,
        prefix: u8::try_from(ones).unwrap_or(u8::MAX),
    })
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    let v6 = || address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()));
    v4.or_else(v6)
}

#[cfg(test)]
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

    #[test]
    fn the_loopback_has_its_address() {
        let all = interface_addresses().unwrap();
        let loopback = FoundAddress {
            interface: "lo".into(),
            address: IpAddr::from([127, 0, 0, 1]),
            prefix: 8,
        };
        assert!(all.contains(&loopback), "{all:?}");
    }
}
