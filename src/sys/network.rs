//! The addresses of the network interfaces.

use std::io;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;

/// Every interface's IPv4 and IPv6 addresses, in the kernel's order (getifaddrs(3)).
pub fn interface_addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let found = getifaddrs()?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        let v6 = || address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip()));
        Some((interface.interface_name, v4.or_else(v6)?))
    });
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_address() {
        let all = interface_addresses().unwrap();
        assert!(
            all.contains(&("lo".into(), IpAddr::from([127, 0, 0, 1]))),
            "{all:?}"
        );
    }
}
