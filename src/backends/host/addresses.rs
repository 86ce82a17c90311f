//! The machine's addresses on its networks.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use schemars::JsonSchema;
use serde::Serialize;

use crate::sys::interface_addresses;

use super::super::source::Tree;

/// `IFA_F_TEMPORARY` in `/proc/net/if_inet6`: a privacy address (RFC 8981), which another soon replaces.
const TEMPORARY: u32 = 0x01;

/// The first ten bits of the addresses that providers and overlays share, 100.64.0.0/10.
const SHARED: u32 = 0b01_1001_0001;

/// An address and the interface that has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix in bits.
    pub prefix: u8,
    #[serde(skip)]
    pub(super) temporary: bool,
}

impl InterfaceAddress {
    /// Such as `192.168.1.4/24`.
    pub(super) fn with_prefix(&self) -> String {
        format!("{}/{}", self.address, self.prefix)
    }

    /// Whether others reach the machine by it, and will for long: not the loopback's, not the link-local
    /// ones, which every interface has, and not the temporary ones.
    pub(super) fn is_lasting(&self) -> bool {
        let link_local = match self.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !self.address.is_loopback() && !link_local && !self.temporary
    }
}

/// From where an address can be reached, as far as it says so itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// From networks that it is on, and those behind the same router (RFC 1918, RFC 4193).
    Private,
    /// From a provider's network, or an overlay such as Tailscale (RFC 6598).
    Shared,
    /// From everywhere, if no firewall on the way is in the way.
    Public,
}

/// An address by which others reach the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReachableAddress {
    #[serde(flatten)]
    address: InterfaceAddress,
    /// From where.
    reach: Reach,
}

impl From<InterfaceAddress> for ReachableAddress {
    fn from(address: InterfaceAddress) -> Self {
        let reach = reach(address.address);
        Self { address, reach }
    }
}

fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) if v4.is_private() => Reach::Private,
        IpAddr::V4(v4) if v4.to_bits() >> 22 == SHARED => Reach::Shared,
        IpAddr::V6(v6) if v6.is_unique_local() => Reach::Private,
        _ => Reach::Public,
    }
}

/// Those of all addresses by which others reach the machine, for long.
pub fn lasting_addresses(tree: &Tree) -> Vec<InterfaceAddress> {
    let mut all = addresses(tree);
    all.retain(InterfaceAddress::is_lasting);
    all
}

/// All addresses of the machine, sorted.
pub fn addresses(tree: &Tree) -> Vec<InterfaceAddress> {
    let temporary = temporary(&tree.text("proc/net/if_inet6").unwrap_or_default());
    // Without them the rest of what is known still stands.
    let found = interface_addresses().unwrap_or_default().into_iter();
    let mut all: Vec<_> = found
        .map(|found| InterfaceAddress {
            // The old tools give an address a name such as `eth0:1`.
            interface: found.interface.split(':').next().unwrap_or_default().into(),
            address: found.address,
            prefix: found.prefix,
            temporary: temporary.contains(&found.address),
        })
        .collect();
    all.sort();
    all.dedup();
    all
}

/// Reads `/proc/net/if_inet6`: address, index, prefix, scope, flags, name; all numbers in hex.
fn temporary(if_inet6: &str) -> BTreeSet<IpAddr> {
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        (flags & TEMPORARY != 0).then_some(IpAddr::V6(Ipv6Addr::from_bits(address)))
    };
    if_inet6.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str, temporary: bool) -> InterfaceAddress {
        InterfaceAddress {
            interface: "eth0".to_owned(),
            address: text.parse().unwrap(),
            prefix: 64,
            temporary,
        }
    }

    #[test]
    fn the_loopback_link_local_and_temporary_addresses_do_not_last() {
        for (text, lasting) in [
            ("192.168.1.4", true),
            ("fd00::2", true),
            ("127.0.0.1", false),
            ("169.254.3.4", false),
            ("::1", false),
            ("fe80::1", false),
        ] {
            assert_eq!(address(text, false).is_lasting(), lasting, "{text}");
            assert!(!address(text, true).is_lasting());
        }
        let here = addresses(&Tree::of_this_machine());
        let loopback = here.iter().find(|found| found.interface == "lo").unwrap();
        assert!(loopback.with_prefix() == "127.0.0.1/8" && !loopback.is_lasting());
    }

    #[test]
    fn an_address_says_from_where_it_is_reached() {
        for (text, expected) in [
            ("10.0.3.1", Reach::Private),
            ("172.16.0.1", Reach::Private),
            ("192.168.1.4", Reach::Private),
            ("fd00::2", Reach::Private),
            ("100.64.0.1", Reach::Shared),
            ("100.127.255.1", Reach::Shared),
            ("100.128.0.1", Reach::Public),
            ("100.63.0.1", Reach::Public),
            ("203.0.113.4", Reach::Public),
            ("2001:db8::1", Reach::Public),
        ] {
            assert_eq!(reach(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn temporary_addresses_are_told_by_their_flag() {
        // As Linux 6.1 writes it on a machine with privacy extensions.
        let text = "00000000000000000000000000000001 01 80 10 80       lo\n\
                    20010db80001000002163efffe010203 02 40 00 00     eth0\n\
                    20010db800010000a1b2c3d4e5f60718 02 40 00 01     eth0\n\
                    fe8000000000000002163efffe010203 02 40 20 80     eth0\n";
        let expected = BTreeSet::from(["2001:db8:1:0:a1b2:c3d4:e5f6:718".parse().unwrap()]);
        assert_eq!(temporary(text), expected);
        for odd in ["", "\n", "zz 1 2 3 4", "00 01", "\u{fffd}"] {
            assert!(temporary(odd).is_empty(), "{odd}");
        }
    }
}
