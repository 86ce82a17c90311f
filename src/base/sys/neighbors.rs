//! The kernel's neighbour table: hosts on the same networks (ARP and neighbour discovery).

use std::io;
use std::net::IpAddr;

use nix::net::if_::if_indextoname;
use nix::sys::socket::SockProtocol;

use super::netlink_list::{attributes, list, u16_at, u32_at};

/// `RTM_GETNEIGH` (rtnetlink(7)).
const GET_NEIGHBORS: u16 = 30;

/// `struct ndmsg`: family, padding, interface, state, flags, type.
const HEADER: usize = 12;

/// `NDA_DST` and `NDA_LLADDR`.
const ADDRESS: u16 = 1;
const HARDWARE_ADDRESS: u16 = 2;

/// `NTF_ROUTER`.
const ROUTER: u8 = 0x80;

/// An entry of the kernel's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundNeighbor {
    /// The interface through which it is reached.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its hardware address; empty while unknown.
    pub hardware: Vec<u8>,
    /// The kernel's state of the entry: one of `NUD_*` (rtnetlink(7)).
    pub state: u16,
    /// Whether it announces itself as a router.
    pub router: bool,
}

/// Returns the kernel's table, in its order.
pub fn neighbors() -> io::Result<Vec<FoundNeighbor>> {
    let entries = list(SockProtocol::NetlinkRoute, GET_NEIGHBORS, &[0; HEADER])?;
    Ok(entries.iter().filter_map(|entry| read(entry)).collect())
}

fn read(entry: &[u8]) -> Option<FoundNeighbor> {
    let interface = if_indextoname(u32_at(entry, 4)?).ok()?;
    let value = |wanted| {
        let mut all = attributes(entry.get(HEADER..).unwrap_or_default());
        all.find_map(|(number, value)| (number == wanted).then_some(value))
    };
    Some(FoundNeighbor {
        interface: interface.to_str().ok()?.to_owned(),
        address: address(value(ADDRESS)?)?,
        hardware: value(HARDWARE_ADDRESS).unwrap_or_default().to_vec(),
        state: u16_at(entry, 8)?,
        router: entry.get(10)? & ROUTER != 0,
    })
}

/// Reads an address in network byte order.
pub(super) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    v4.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers() {
        for neighbor in neighbors().unwrap() {
            assert!(!neighbor.interface.is_empty(), "{neighbor:?}");
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn an_entry_is_read() {
        // The loopback is the first interface of every network namespace.
        let entry = [
            10, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0x80, 1, 20, 0, 1, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 7, 10, 0, 2, 0, 2, 4, 6, 8, 10, 12, 0, 0,
        ];
        let expected = FoundNeighbor {
            interface: "lo".to_owned(),
            address: "fe80::7".parse().unwrap(),
            hardware: vec![2, 4, 6, 8, 10, 12],
            state: 4,
            router: true,
        };
        assert_eq!(read(&entry), Some(expected));
        for length in 0..32 {
            assert_eq!(read(&entry[..length]), None, "{length} bytes");
        }
    }
}
