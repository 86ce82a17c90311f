//! The addresses of the network interfaces.

use std::io;
use std::net::IpAddr;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::sys::socket::SockaddrStorage;

use gatewren_portable::FoundAddress;

/// Returns every interface's IPv4 and IPv6 addresses, in the kernel's order (getifaddrs(3)).
pub fn interface_addresses() -> io::Result<Vec<FoundAddress>> {
    Ok(getifaddrs()?.filter_map(convert_address).collect())
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
    use super::*;

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
