//! A container's network, read from `/proc/PID/net` of its init: addresses, open ports and traffic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use gatewren_base::sys::{open_ports_beside, open_ports_of, source::text};
use gatewren_wire::operations::{ContainerListener, Transport};

/// The most addresses, and the most ports, that are kept; more are left out.
const MOST: usize = 256;

/// A network namespace.
#[derive(Debug)]
pub struct NetworkNamespace {
    /// A process in it.
    pid: i32,
    /// Its directory in `/proc`.
    folder: PathBuf,
}

impl NetworkNamespace {
    /// The network namespace of a process.
    pub fn of(pid: i32) -> Self {
        let folder = format!("/proc/{pid}/net").into();
        Self { pid, folder }
    }

    /// Returns its addresses, sorted, without loopback and link-local ones.
    pub fn addresses(&self) -> Vec<IpAddr> {
        let v4 = self.read("fib_trie");
        let v6 = self.read("if_inet6");
        let v4 = addresses_v4(&v4).into_iter().map(IpAddr::V4);
        let v6 = v6.lines().filter_map(address_v6).map(IpAddr::V6);
        sorted(v4.chain(v6))
    }

    /// Returns its open ports, sorted.
    pub fn listeners(&self) -> Vec<ContainerListener> {
        let asked = open_ports_beside(self.pid);
        // Without permission to enter the namespace, `/proc` is read instead, which takes longer.
        let open = asked.unwrap_or_else(|_| open_ports_of(&self.folder));
        sorted(open.into_iter().map(|open| ContainerListener {
            protocol: if open.tcp {
                Transport::Tcp
            } else {
                Transport::Udp
            },
            port: open.port,
            address: open.address,
        }))
    }

    /// Returns the bytes received and sent by all interfaces except loopback.
    pub fn traffic(&self) -> Option<(u64, u64)> {
        let devices = text(self.folder.join("dev"))?;
        let interfaces = devices.lines().filter_map(interface);
        Some(interfaces.fold((0, 0), |(received, sent), (r, s)| (received + r, sent + s)))
    }

    fn read(&self, file: &str) -> String {
        text(self.folder.join(file)).unwrap_or_default()
    }
}

/// Returns whether two processes are in the same network namespace.
pub fn same_network(pid: i32, other: i32) -> bool {
    let namespace = |pid| std::fs::read_link(Path::new(&format!("/proc/{pid}/ns/net"))).ok();
    namespace(pid).is_some_and(|one| namespace(other) == Some(one))
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.take(MOST).collect();
    all.sort();
    all.dedup();
    all
}

/// Returns the local addresses of the kernel's routing table: a leaf `|-- 10.0.3.5`, and below it `/32 host LOCAL`.
fn addresses_v4(trie: &str) -> Vec<Ipv4Addr> {
    let mut leaf = None;
    let mut found = Vec::new();
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(leaf.filter(|at| !at.is_loopback() && !at.is_link_local()));
        }
    }
    found
}

/// Parses a line of `if_inet6` (`proc_net(5)`): address, interface, prefix, scope, flags, name.
fn address_v6(line: &str) -> Option<Ipv6Addr> {
    let mut words = line.split_whitespace();
    let address = u128::from_str_radix(words.next()?, 16).ok()?;
    let global = words.nth(2)? == "00";
    global.then(|| Ipv6Addr::from(address))
}

/// Parses the bytes received and sent from a line of `dev` (`proc_net(5)`).
fn interface(line: &str) -> Option<(u64, u64)> {
    let (name, counters) = line.split_once(':')?;
    let mut counters = counters.split_whitespace();
    let received = counters.next()?.parse().ok()?;
    let sent = counters.nth(7)?.parse().ok()?;
    (name.trim() != "lo").then_some((received, sent))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::super::network::*;

    #[test]
    fn addresses_are_those_that_others_can_reach() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n\
                    Local:\n     +-- 10.0.3.0/24 2 0 2\n        |-- 10.0.3.0\n           /24 link UNICAST\n\
                    |-- 10.0.3.5\n           /32 host LOCAL\n        |-- 10.0.3.255\n\
                    /32 link BROADCAST\n     |-- 127.0.0.0\n        /8 host LOCAL\n     |-- 127.0.0.1\n\
                    /32 host LOCAL\n";
        assert_eq!(addresses_v4(trie), [Ipv4Addr::new(10, 0, 3, 5)]);
        let v6 = |line| address_v6(line).map(|address| address.to_string());
        let global = "fd000000000000000000000000000005 02 40 00 80     eth0";
        assert_eq!(v6(global).as_deref(), Some("fd00::5"));
        assert_eq!(
            v6("fe800000000000000000000000000001 02 40 20 80 eth0"),
            None
        );
        assert_eq!(v6("00000000000000000000000000000001 01 80 10 80 lo"), None);
        assert_eq!(v6(""), None);
    }

    #[test]
    fn the_ports_of_this_process_are_seen() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let tcp6 = TcpListener::bind("[::1]:0").ok();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let network = NetworkNamespace::of(std::process::id().try_into().unwrap());
        // A busy host may have more ports than are kept; then this one may be missing.
        let all = network.listeners();
        let expected = [
            Some((Transport::Tcp, tcp.local_addr().unwrap())),
            tcp6.map(|tcp| (Transport::Tcp, tcp.local_addr().unwrap())),
            Some((Transport::Udp, udp.local_addr().unwrap())),
        ];
        for (protocol, at) in expected.into_iter().flatten() {
            let (port, address) = (at.port(), at.ip());
            let wanted = ContainerListener {
                protocol,
                port,
                address,
            };
            assert!(
                all.len() >= MOST || all.contains(&wanted),
                "{wanted:?} in {all:?}"
            );
        }
        assert!(network.traffic().is_some());
    }

    #[test]
    fn odd_lines_are_nothing() {
        for odd in ["", ":", "eth0: x"] {
            assert_eq!(interface(odd), None, "{odd}");
        }
        let line = "  eth0:  1500 10 0 0 0 0 0 0  2500 20 0 0 0 0 0 0";
        assert_eq!(interface(line), Some((1500, 2500)));
    }
}
