//! Ranges of addresses, written as `192.168.1.0/24`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A range of addresses with a common prefix (RFC 4632). A single address is a range too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IpNetwork {
    first: IpAddr,
    bits: u8,
}

impl IpNetwork {
    /// Returns whether an address is in the range. An IPv4-mapped IPv6 address is treated as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == Some(self.first)
    }
}

/// Returns the address that counts as one source of connections: an IPv4 address itself, or the /64 network of an
/// IPv6 address. A /64 belongs to one household (RFC 6177).
pub fn ip_prefix(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        IpAddr::V4(v4) => IpAddr::V4(v4),
    }
}

/// Clears all but the first bits of an address. Returns `None` if the address has fewer bits.
fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.checked_sub(bits)?).unwrap_or(0);
            Some(Ipv4Addr::from_bits(v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.checked_sub(bits)?);
            Some(Ipv6Addr::from_bits(v6.to_bits() & mask.unwrap_or(0)).into())
        }
    }
}

/// The error for a text that is not a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidIpNetwork(String);

impl fmt::Display for InvalidIpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text) = self;
        write!(
            f,
            "\"{text}\" is not an address or a range of addresses; write a range as its first address and the \
             length of its prefix, such as 192.168.1.0/24 or fd00::/8"
        )
    }
}

impl std::error::Error for InvalidIpNetwork {}

impl FromStr for IpNetwork {
    type Err = InvalidIpNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidIpNetwork> {
        let invalid = || InvalidIpNetwork(text.chars().take(64).collect());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| invalid())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let bits = bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 });
        // An address with bits outside the mask is probably a mistake. Accepting it would widen the intended range.
        let first = masked(address, bits).filter(|first| *first == address);
        Ok(Self {
            first: first.ok_or_else(invalid)?,
            bits,
        })
    }
}

impl TryFrom<String> for IpNetwork {
    type Error = InvalidIpNetwork;

    fn try_from(text: String) -> Result<Self, InvalidIpNetwork> {
        text.parse()
    }
}

impl From<IpNetwork> for String {
    fn from(network: IpNetwork) -> Self {
        network.to_string()
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_shares_its_bits() {
        #[rustfmt::skip]
        let table = [
            ("192.168.1.0/24", "192.168.1.77", true), ("192.168.1.0/24", "192.168.2.1", false),
            ("192.168.1.0/24", "::ffff:192.168.1.77", true), ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false), ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "::1", false),
            ("::/0", "fd00::1", true), ("::/0", "10.0.0.1", false), ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe80::1", false),
        ];
        for (range, address, expected) in table {
            let network: IpNetwork = range.parse().unwrap();
            assert_eq!(
                network.contains(address.parse().unwrap()),
                expected,
                "{range} {address}"
            );
            let again: IpNetwork = network.to_string().parse().unwrap();
            assert_eq!(again, network);
        }
    }

    #[test]
    fn a_v6_household_is_one_and_a_mapped_v4_is_v4() {
        let key = |text: &str| ip_prefix(text.parse().unwrap());
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff"));
        assert_ne!(key("2001:db8:0:1::1"), key("2001:db8::1"));
        assert_eq!(key("::ffff:10.0.0.1"), key("10.0.0.1"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for bad in [
            "",
            "x",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.1/24",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "1.2.3/8",
        ] {
            assert!(bad.parse::<IpNetwork>().is_err(), "{bad}");
        }
    }
}
