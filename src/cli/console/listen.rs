//! Where a server is to listen, as the command line says it.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// The host of a listener that only this host reaches.
const LOCALHOST: &str = "localhost";

/// Where to listen: `9443`, or `192.168.1.10:9443` for only this address, or `localhost:9443`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// Any address, or the command's own choice of one.
    Port(u16),
    /// Only this address.
    Address(SocketAddr),
}

impl Listen {
    /// The address to listen on; a bare port is one of `otherwise`.
    pub fn address(self, otherwise: Ipv4Addr) -> SocketAddr {
        match self {
            Self::Port(port) => (otherwise, port).into(),
            Self::Address(address) => address,
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port) = text.parse()
            && port != 0
        {
            return Ok(Self::Port(port));
        }
        let address = match text.rsplit_once(':') {
            Some((LOCALHOST, port)) => port
                .parse::<u16>()
                .ok()
                .map(|port| (Ipv4Addr::LOCALHOST, port).into()),
            _ => text.parse().ok(),
        };
        address.map(Self::Address).ok_or_else(|| {
            format!(
                "{text:?} is neither a port such as 8443 nor an address and a port such as 192.168.1.10:8443"
            )
        })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(port) => port.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_listen_is_a_port_or_an_address() {
        assert_eq!("9443".parse(), Ok(Listen::Port(9443)));
        let address = |text: &str| Ok(Listen::Address(text.parse().unwrap()));
        let near = Ipv4Addr::LOCALHOST;
        for (text, expected) in [
            ("192.168.1.10:9443", "192.168.1.10:9443"),
            ("[::1]:9443", "[::1]:9443"),
            ("localhost:9443", "127.0.0.1:9443"),
            ("127.0.0.1:0", "127.0.0.1:0"),
        ] {
            assert_eq!(text.parse(), address(expected), "{text}");
        }
        assert_eq!(
            Listen::Port(9443).address(near),
            "127.0.0.1:9443".parse().unwrap()
        );
        for bad in [
            "",
            "0",
            "box.lan:8443",
            "70000",
            "localhost",
            "localhost:70000",
            ":8443",
        ] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
    }
}
