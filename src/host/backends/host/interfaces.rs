//! The host's network interfaces: kind, state and addresses.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::{HostTree, field};
use super::addresses::InterfaceAddress;

/// `IFF_UP` in the flags in sysfs (netdevice(7)).
const ADMINISTRATIVELY_UP: u32 = 1;

/// Link type numbers in sysfs (`ARPHRD_*`, `if_arp.h`).
const ETHERNET: u32 = 1;
const LOOPBACK: u32 = 772;

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: InterfaceKind,
    /// Its state.
    pub state: LinkState,
    /// Its hardware address, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// The largest packet in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Its speed in Mbit/s; only for a hardware interface with a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_mbit: Option<u32>,
    /// The bridge or bond that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Its addresses with the length of their networks' prefix, such as `192.168.1.4/24`, sorted.
    pub addresses: Vec<String>,
    /// Those at which other machines reach the host permanently.
    #[serde(skip)]
    pub lasting: Vec<String>,
}

/// The kind of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterfaceKind {
    /// A network card.
    Ethernet,
    /// A radio.
    Wifi,
    /// The loopback of the host.
    Loopback,
    /// A bridge of other interfaces.
    Bridge,
    /// Several cards that work as one.
    Bond,
    /// A virtual network on another interface.
    Vlan,
    /// A `WireGuard` tunnel.
    Wireguard,
    /// Another tunnel.
    Tunnel,
    /// Another interface without hardware, such as a container's virtual Ethernet port.
    Virtual,
}

/// The state of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// It carries packets.
    Up,
    /// It is enabled, but has no cable, no network, or no interface below it.
    NoCarrier,
    /// It is disabled.
    Down,
}

impl Interface {
    /// Whether it is a lasting fact about the host. Excluded are the loopback and the virtual ports
    /// of containers and virtual machines, which come and go with them: without hardware, part of a
    /// bridge, and without addresses.
    pub fn is_permanent(&self) -> bool {
        let is_plain = self.kind == InterfaceKind::Loopback || self.is_port();
        !(is_plain && self.lasting.is_empty())
    }

    /// Whether it looks like the virtual port of a container or virtual machine: no hardware, and
    /// part of a bridge.
    pub fn is_port(&self) -> bool {
        let made_up = matches!(self.kind, InterfaceKind::Virtual | InterfaceKind::Tunnel);
        made_up && self.part_of.is_some()
    }
}

/// Returns all interfaces of a host that has these addresses, sorted by name.
pub fn interfaces(tree: &HostTree, addresses: &[InterfaceAddress]) -> Vec<Interface> {
    let mut by_name: BTreeMap<&str, Vec<&InterfaceAddress>> = BTreeMap::new();
    for address in addresses {
        by_name.entry(&address.interface).or_default().push(address);
    }
    let names = tree.names("sys/class/net").into_iter();
    // The directory also has files, such as `bonding_masters`.
    names
        .filter(|name| tree.has(&format!("sys/class/net/{name}/ifindex")))
        .map(|name| interface(tree, name, &by_name))
        .collect()
}

fn interface(
    tree: &HostTree,
    name: String,
    addresses: &BTreeMap<&str, Vec<&InterfaceAddress>>,
) -> Interface {
    let place = format!("sys/class/net/{name}");
    let file = |what: &str| format!("{place}/{what}");
    let own = addresses.get(name.as_str()).map_or(&[][..], Vec::as_slice);
    let kind = kind(tree, &place);
    let is_real = tree.has(&file("device"));
    let mac = tree.word(&file("address"));
    Interface {
        kind,
        state: state(tree, &place),
        mac: mac.filter(|mac| mac.bytes().any(|b| !matches!(b, b'0' | b':'))),
        mtu: tree.number(&file("mtu")),
        // Virtual interfaces report another interface's speed or an arbitrary one; one without a
        // cable reports -1.
        speed_mbit: tree.number(&file("speed")).filter(|_| is_real),
        part_of: tree.link_name(&file("master")),
        addresses: own.iter().map(|address| address.with_prefix()).collect(),
        lasting: own
            .iter()
            .filter(|address| address.is_permanent())
            .map(|address| address.with_prefix())
            .collect(),
        name,
    }
}

fn kind(tree: &HostTree, place: &str) -> InterfaceKind {
    let file = |what: &str| format!("{place}/{what}");
    let uevent = tree.text(&file("uevent")).unwrap_or_default();
    let link_type = tree.number(&file("type")).unwrap_or(ETHERNET);
    match field(&uevent, "DEVTYPE", '=') {
        Some("wlan") => InterfaceKind::Wifi,
        Some("bridge") => InterfaceKind::Bridge,
        Some("bond") => InterfaceKind::Bond,
        Some("vlan") => InterfaceKind::Vlan,
        Some("wireguard") => InterfaceKind::Wireguard,
        _ if link_type == LOOPBACK => InterfaceKind::Loopback,
        _ if tree.has(&file("phy80211")) => InterfaceKind::Wifi,
        _ if tree.has(&file("tun_flags")) || link_type != ETHERNET => InterfaceKind::Tunnel,
        _ if tree.has(&file("device")) => InterfaceKind::Ethernet,
        _ => InterfaceKind::Virtual,
    }
}

fn state(tree: &HostTree, place: &str) -> LinkState {
    let flags = tree.word(&format!("{place}/flags"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok());
    if flags.unwrap_or(0) & ADMINISTRATIVELY_UP == 0 {
        return LinkState::Down;
    }
    // `unknown` is the state of interfaces without carrier detection, such as tunnels.
    match tree.word(&format!("{place}/operstate")).as_deref() {
        Some("up" | "unknown") => LinkState::Up,
        _ => LinkState::NoCarrier,
    }
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    /// The relevant files of a small server: a card with a cable, one without, a radio, a bridge
    /// with a container's port, and tunnels.
    const SERVER: &[(&str, &str)] = &[
        ("sys/class/net/bonding_masters", "\n"),
        ("sys/class/net/enp1s0/ifindex", "2\n"),
        ("sys/class/net/enp1s0/type", "1\n"),
        ("sys/class/net/enp1s0/flags", "0x1003\n"),
        ("sys/class/net/enp1s0/operstate", "up\n"),
        ("sys/class/net/enp1s0/address", "00:16:3e:01:02:03\n"),
        ("sys/class/net/enp1s0/mtu", "1500\n"),
        ("sys/class/net/enp1s0/speed", "1000\n"),
        ("sys/class/net/enp1s0/device/vendor", "0x8086\n"),
        ("sys/class/net/enp1s0/master", "-> ../br0"),
        ("sys/class/net/enp2s0/ifindex", "3\n"),
        ("sys/class/net/enp2s0/type", "1\n"),
        ("sys/class/net/enp2s0/flags", "0x1003\n"),
        ("sys/class/net/enp2s0/operstate", "down\n"),
        ("sys/class/net/enp2s0/speed", "-1\n"),
        ("sys/class/net/enp2s0/device/vendor", "0x8086\n"),
        ("sys/class/net/wlp3s0/ifindex", "4\n"),
        ("sys/class/net/wlp3s0/type", "1\n"),
        ("sys/class/net/wlp3s0/flags", "0x1002\n"),
        ("sys/class/net/wlp3s0/operstate", "down\n"),
        (
            "sys/class/net/wlp3s0/uevent",
            "DEVTYPE=wlan\nINTERFACE=wlp3s0\nIFINDEX=4\n",
        ),
        ("sys/class/net/br0/ifindex", "5\n"),
        ("sys/class/net/br0/type", "1\n"),
        ("sys/class/net/br0/flags", "0x1003\n"),
        ("sys/class/net/br0/operstate", "up\n"),
        ("sys/class/net/br0/speed", "1000\n"),
        (
            "sys/class/net/br0/uevent",
            "DEVTYPE=bridge\nINTERFACE=br0\nIFINDEX=5\n",
        ),
        ("sys/class/net/vethA1b2C3/ifindex", "9\n"),
        ("sys/class/net/vethA1b2C3/type", "1\n"),
        ("sys/class/net/vethA1b2C3/flags", "0x1003\n"),
        ("sys/class/net/vethA1b2C3/operstate", "up\n"),
        ("sys/class/net/vethA1b2C3/speed", "10000\n"),
        ("sys/class/net/vethA1b2C3/master", "-> ../br0"),
        ("sys/class/net/wg0/ifindex", "6\n"),
        ("sys/class/net/wg0/type", "65534\n"),
        ("sys/class/net/wg0/flags", "0x91\n"),
        ("sys/class/net/wg0/operstate", "unknown\n"),
        (
            "sys/class/net/wg0/uevent",
            "DEVTYPE=wireguard\nINTERFACE=wg0\nIFINDEX=6\n",
        ),
        ("sys/class/net/tap0/ifindex", "7\n"),
        ("sys/class/net/tap0/type", "1\n"),
        ("sys/class/net/tap0/tun_flags", "0x1002\n"),
    ];

    fn address(interface: &str, text: &str, prefix: u8, temporary: bool) -> InterfaceAddress {
        InterfaceAddress {
            interface: interface.to_owned(),
            address: text.parse().unwrap(),
            prefix,
            temporary,
        }
    }

    #[test]
    fn each_interface_is_told_with_what_it_is_and_how_it_stands() {
        let scratch = Scratch::new();
        let tree = record(&scratch, SERVER);
        let all = interfaces(&tree, &[]);
        let seen: Vec<_> = all
            .iter()
            .map(|one| {
                (
                    one.name.as_str(),
                    one.kind,
                    one.state,
                    one.speed_mbit,
                    one.is_permanent(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("br0", InterfaceKind::Bridge, LinkState::Up, None, true),
                (
                    "enp1s0",
                    InterfaceKind::Ethernet,
                    LinkState::Up,
                    Some(1000),
                    true
                ),
                (
                    "enp2s0",
                    InterfaceKind::Ethernet,
                    LinkState::NoCarrier,
                    None,
                    true
                ),
                ("tap0", InterfaceKind::Tunnel, LinkState::Down, None, true),
                (
                    "vethA1b2C3",
                    InterfaceKind::Virtual,
                    LinkState::Up,
                    None,
                    false
                ),
                ("wg0", InterfaceKind::Wireguard, LinkState::Up, None, true),
                ("wlp3s0", InterfaceKind::Wifi, LinkState::Down, None, true),
            ]
        );
    }

    #[test]
    fn an_interface_has_its_addresses_and_what_it_is_joined_to() {
        let scratch = Scratch::new();
        let tree = record(&scratch, SERVER);
        let addresses = [
            address("br0", "192.168.1.4", 24, false),
            address("br0", "2001:db8::a1", 64, true),
            address("br0", "fe80::1", 64, false),
            address("gone0", "192.168.9.9", 24, false),
        ];
        let all = interfaces(&tree, &addresses);
        let bridge = &all[0];
        assert_eq!(
            bridge.addresses,
            ["192.168.1.4/24", "2001:db8::a1/64", "fe80::1/64"]
        );
        assert_eq!(bridge.lasting, ["192.168.1.4/24"]);
        let card = &all[1];
        assert_eq!(card.mac.as_deref(), Some("00:16:3e:01:02:03"));
        assert_eq!(
            (card.mtu, card.part_of.as_deref()),
            (Some(1500), Some("br0"))
        );
    }

    #[test]
    fn a_machine_without_a_network_has_no_interfaces() {
        assert!(interfaces(&HostTree::below("/no/such/place".as_ref()), &[]).is_empty());
    }
}
