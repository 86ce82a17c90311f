//! Machines on the same networks that the kernel knows.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use gatewren_base::sys::FoundNeighbor;

/// States of the kernel's neighbour entries (`NUD_*`, rtnetlink(7)).
const INCOMPLETE: u16 = 0x01;
const REACHABLE: u16 = 0x02;
const FAILED: u16 = 0x20;
const NOARP: u16 = 0x40;
const PERMANENT: u16 = 0x80;

/// A machine on one of the host's networks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Neighbor {
    /// The interface through which it is reached.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its hardware address; absent until it has answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Its state in the kernel's table.
    pub state: NeighborState,
    /// Whether it announced itself as a router; only known for IPv6.
    pub router: bool,
}

/// The state of a neighbour in the kernel's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NeighborState {
    /// It has answered recently.
    Reachable,
    /// It has answered before, but was not asked recently.
    Stale,
    /// It does not answer.
    Unreachable,
    /// An administrator added the entry.
    Fixed,
}

/// Returns the neighbours sorted by interface and address, without groups and entries that need no
/// hardware address.
pub fn list_neighbors(all: Vec<FoundNeighbor>) -> Vec<Neighbor> {
    let mut all: Vec<_> = all.into_iter().filter_map(neighbor).collect();
    all.sort();
    all.dedup();
    all
}

fn neighbor(found: FoundNeighbor) -> Option<Neighbor> {
    if found.address.is_multicast() || found.state & NOARP != 0 || found.state == 0 {
        return None;
    }
    let state = match found.state {
        state if state & PERMANENT != 0 => NeighborState::Fixed,
        state if state & REACHABLE != 0 => NeighborState::Reachable,
        state if state & (INCOMPLETE | FAILED) != 0 => NeighborState::Unreachable,
        _ => NeighborState::Stale,
    };
    let pairs: Vec<_> = found
        .hardware
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Some(Neighbor {
        interface: found.interface,
        address: found.address,
        mac: (!pairs.is_empty()).then(|| pairs.join(":")),
        state,
        router: found.router,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_neighbor(address: &str, state: u16) -> FoundNeighbor {
        FoundNeighbor {
            interface: "eth0".to_owned(),
            address: address.parse().unwrap(),
            hardware: if state == INCOMPLETE {
                Vec::new()
            } else {
                vec![2, 0xab, 0, 0, 0, 1]
            },
            state,
            router: false,
        }
    }

    #[test]
    fn the_kernels_states_become_words() {
        let all = [
            ("192.168.1.9", 0x04),
            ("192.168.1.1", REACHABLE),
            ("192.168.1.2", INCOMPLETE),
            ("192.168.1.3", FAILED),
            ("192.168.1.4", PERMANENT),
            ("192.168.1.5", 0x10),
            ("224.0.0.251", NOARP),
            ("ff02::fb", REACHABLE),
            ("192.168.1.6", NOARP),
            ("192.168.1.7", 0),
        ];
        let all = all
            .map(|(address, state)| found_neighbor(address, state))
            .to_vec();
        let seen: Vec<_> = list_neighbors(all)
            .iter()
            .map(|one| (one.address.to_string(), one.state, one.mac.is_some()))
            .collect();
        let expected = [
            ("192.168.1.1", NeighborState::Reachable, true),
            ("192.168.1.2", NeighborState::Unreachable, false),
            ("192.168.1.3", NeighborState::Unreachable, true),
            ("192.168.1.4", NeighborState::Fixed, true),
            ("192.168.1.5", NeighborState::Stale, true),
            ("192.168.1.9", NeighborState::Stale, true),
        ];
        assert_eq!(
            seen,
            expected.map(|(at, state, mac)| (at.to_owned(), state, mac))
        );
        let mac = list_neighbors(vec![found_neighbor("192.168.1.1", REACHABLE)])
            .remove(0)
            .mac;
        assert_eq!(mac.as_deref(), Some("02:ab:00:00:00:01"));
    }
}
