//! The host's network addresses.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::interface_addresses;

use super::super::source::HostTree;

/// `IFA_F_TEMPORARY` in `/proc/net/if_inet6`: a privacy address (RFC 8981), which is soon replaced.
const TEMPORARY: u32 = 0x01;

/// The first ten bits of 100.64.0.0/10, the shared range of providers and overlays.
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
    /// Returns the address with its prefix length, such as `192.168.1.4/24`.
    pub(super) fn with_prefix(&self) -> String {
        format!("{}/{}", self.address, self.prefix)
    }

    /// Whether other machines can reach the host at this address permanently. Loopback, link-local
    /// (every interface has one) and temporary addresses are excluded.
    pub(super) fn is_permanent(&self) -> bool {
        let link_local = match self.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        !self.address.is_loopback() && !link_local && !self.temporary
    }
}

/// From where an address can be reached, judged by its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AddressReach {
    /// From its own networks and those behind the same router (RFC 1918, RFC 4193). So can an address that is meant for
    /// documents (RFC 5737, RFC 3849): no other network has a route to it.
    Private,
    /// From a provider's network, or an overlay such as Tailscale (RFC 6598).
    Shared,
    /// From everywhere, unless a firewall blocks it.
    Public,
}

/// An address at which other machines reach the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReachableAddress {
    #[serde(flatten)]
    address: InterfaceAddress,
    /// From where it can be reached.
    reach: AddressReach,
}

impl From<InterfaceAddress> for ReachableAddress {
    fn from(address: InterfaceAddress) -> Self {
        let reach = reach(address.address);
        Self { address, reach }
    }
}

fn reach(address: IpAddr) -> AddressReach {
    match address {
        IpAddr::V4(v4) if v4.is_private() || v4.is_documentation() => AddressReach::Private,
        IpAddr::V4(v4) if v4.to_bits() >> 22 == SHARED => AddressReach::Shared,
        IpAddr::V6(v6) if v6.is_unique_local() || is_documentation(v6) => AddressReach::Private,
        _ => AddressReach::Public,
    }
}

/// Whether it is in `2001:db8::/32` (RFC 3849).
fn is_documentation(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [0x2001, 0xdb8, ..])
}

/// Returns the addresses at which other machines reach the host permanently.
pub fn lasting_addresses(tree: &HostTree) -> Vec<InterfaceAddress> {
    let mut all = addresses(tree);
    all.retain(InterfaceAddress::is_permanent);
    all
}

/// Returns all addresses of the host, sorted.
pub fn addresses(tree: &HostTree) -> Vec<InterfaceAddress> {
    let temporary = temporary(&tree.text("proc/net/if_inet6").unwrap_or_default());
    // On failure the other facts are still valid.
    let found = interface_addresses().unwrap_or_default().into_iter();
    let mut all: Vec<_> = found
        .map(|found| InterfaceAddress {
            // Old tools name an address, such as `eth0:1`.
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

/// Parses `/proc/net/if_inet6`: address, index, prefix, scope, flags, name; all numbers in hex.
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
            assert_eq!(address(text, false).is_permanent(), lasting, "{text}");
            assert!(!address(text, true).is_permanent());
        }
        let here = addresses(&HostTree::of_this_machine());
        let loopback = here.iter().find(|found| found.interface == "lo").unwrap();
        assert!(loopback.with_prefix() == "127.0.0.1/8" && !loopback.is_permanent());
    }

    #[test]
    fn an_address_says_from_where_it_is_reached() {
        for (text, expected) in [
            ("10.0.3.1", AddressReach::Private),
            ("172.16.0.1", AddressReach::Private),
            ("192.168.1.4", AddressReach::Private),
            ("fd00::2", AddressReach::Private),
            ("100.64.0.1", AddressReach::Shared),
            ("100.127.255.1", AddressReach::Shared),
            ("100.128.0.1", AddressReach::Public),
            ("100.63.0.1", AddressReach::Public),
            ("203.0.113.4", AddressReach::Private),
            ("9.9.9.9", AddressReach::Public),
            ("2001:db8::1", AddressReach::Private),
            ("2620:fe::9", AddressReach::Public),
        ] {
            assert_eq!(reach(text.parse().unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn temporary_addresses_are_told_by_their_flag() {
        // Written by Linux 6.1 on a machine with privacy extensions.
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
