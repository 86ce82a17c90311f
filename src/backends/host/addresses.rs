//! The machine's addresses on its networks.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use crate::sys::interface_addresses;

/// An address and the interface that has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct InterfaceAddress {
    /// The interface's name.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
}

/// All addresses by which others can reach the machine, sorted: not those of the loopback and not the
/// link-local ones, which every interface has.
pub fn addresses() -> Vec<InterfaceAddress> {
    // Without them the rest of what is known still stands.
    let mut all: Vec<_> = interface_addresses()
        .unwrap_or_default()
        .into_iter()
        .filter(|(_, address)| is_reachable(*address))
        .map(|(interface, address)| InterfaceAddress { interface, address })
        .collect();
    all.sort();
    all.dedup();
    all
}

fn is_reachable(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !address.is_loopback() && !link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_and_link_local_addresses_are_left_out() {
        for (text, reachable) in [
            ("192.168.1.4", true),
            ("fd00::2", true),
            ("127.0.0.1", false),
            ("169.254.3.4", false),
            ("::1", false),
            ("fe80::1", false),
        ] {
            assert_eq!(is_reachable(text.parse().unwrap()), reachable, "{text}");
        }
        assert!(addresses().iter().all(|found| found.interface != "lo"));
    }
}
