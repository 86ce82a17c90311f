//! The open ports of a network namespace: from the kernel over netlink, or from the text in `/proc`.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::thread;

use nix::libc;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::SockProtocol;

use super::neighbors::address as plain_address;
use super::netlink_list::{attributes, list, u32_at};
use super::source::text;

/// `SOCK_DIAG_BY_FAMILY` (`sock_diag(7)`).
const BY_FAMILY: u16 = 20;

/// `struct inet_diag_req_v2` and `struct inet_diag_msg`.
const REQUEST_BYTES: usize = 56;
const MESSAGE_BYTES: usize = 72;

/// `INET_DIAG_CGROUP_ID`.
const CGROUP_ID: u16 = 21;

/// States of a socket (`TCP_*` of `tcp_states.h`). Datagram sockets do not listen: an unconnected one receives from
/// any sender.
const UNCONNECTED: u8 = 7;
const LISTENS: u8 = 10;

/// The four kinds of socket: file of `/proc/PID/net`, family, whether it is TCP.
const KINDS: [(&str, i32, bool); 4] = [
    ("tcp", libc::AF_INET, true),
    ("tcp6", libc::AF_INET6, true),
    ("udp", libc::AF_INET, false),
    ("udp6", libc::AF_INET6, false),
];

/// A port that is open for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenPort {
    /// Whether it accepts connections (TCP) or datagrams (UDP).
    pub tcp: bool,
    /// The address that it is bound to.
    pub address: IpAddr,
    /// Its number.
    pub port: u16,
    /// The user id of the process that opened it.
    pub uid: u32,
    /// The socket's inode number, as in the links of `/proc/PID/fd`.
    pub inode: u64,
    /// The inode number of the cgroup (version 2) of the process that opened it; not known from `/proc`.
    pub cgroup: Option<u64>,
}

/// Returns the open ports of this network namespace, in the kernel's order. The kernel returns only sockets in the
/// wanted state, regardless of the number of connections.
pub fn open_ports() -> io::Result<Vec<OpenPort>> {
    let mut found = Vec::new();
    for (_, family, tcp) in KINDS {
        let entries = list(
            SockProtocol::NetlinkSockDiag,
            BY_FAMILY,
            &request(family, tcp),
        )?;
        found.extend(entries.iter().filter_map(|entry| parse_entry(entry, tcp)));
    }
    Ok(found)
}

/// Returns the open ports of the network namespace that a process is in; needs `CAP_SYS_ADMIN`.
///
/// Reading them in its `/proc/PID/net` takes the kernel some 5 ms a file on a large host, even if there are few: it
/// walks the table of all connections of all namespaces.
///
/// Fast path: `/proc/PID/net/tcp` takes 11 ms a container, twice a minute.
pub fn open_ports_beside(pid: i32) -> io::Result<Vec<OpenPort>> {
    let namespace = File::open(format!("/proc/{pid}/ns/net"))?;
    // On a separate thread that ends there: switching back might fail, and nothing else must run in that namespace.
    thread::scope(|scope| {
        let ask = move || {
            setns(namespace, CloneFlags::CLONE_NEWNET)?;
            open_ports()
        };
        let asking = thread::Builder::new().spawn_scoped(scope, ask)?;
        let failed = |_| Err(io::Error::other("the querying thread failed"));
        asking.join().unwrap_or_else(failed)
    })
}

/// Like `open_ports`, as far as `/proc` shows it: from a directory such as `/proc/PID/net`, which may be of another
/// namespace.
pub fn open_ports_of(folder: &Path) -> Vec<OpenPort> {
    let mut found = Vec::new();
    for (file, _, tcp) in KINDS {
        let sockets = text(folder.join(file)).unwrap_or_default();
        found.extend(sockets.lines().filter_map(|line| parse_line(line, tcp)));
    }
    found
}

fn open_state(tcp: bool) -> u8 {
    if tcp { LISTENS } else { UNCONNECTED }
}

fn request(family: i32, tcp: bool) -> [u8; REQUEST_BYTES] {
    let protocol = if tcp {
        libc::IPPROTO_TCP
    } else {
        libc::IPPROTO_UDP
    };
    let states = (1_u32 << open_state(tcp)).to_ne_bytes();
    let mut bytes = [0; REQUEST_BYTES];
    let small = [family, protocol].map(|number| u8::try_from(number).unwrap_or_default());
    let head = small.into_iter().chain([0, 0]).chain(states);
    for (byte, value) in bytes.iter_mut().zip(head) {
        *byte = value;
    }
    bytes
}

/// Parses `struct inet_diag_msg`: family, state, timer, retransmissions; ports and addresses in network byte order,
/// interface and cookie; then expiry, queues, user and inode.
fn parse_entry(entry: &[u8], tcp: bool) -> Option<OpenPort> {
    let family = i32::from(*entry.first()?);
    let length = if family == libc::AF_INET { 4 } else { 16 };
    let [high, low] = *entry.get(4..)?.first_chunk()?;
    let [remote_high, remote_low] = *entry.get(6..)?.first_chunk()?;
    let open = *entry.get(1)? == open_state(tcp) && (remote_high, remote_low) == (0, 0);
    let mut more = attributes(entry.get(MESSAGE_BYTES..)?);
    let cgroup = more.find_map(|(number, value)| (number == CGROUP_ID).then_some(value));
    open.then_some(OpenPort {
        tcp,
        address: plain_address(entry.get(8..8 + length)?)?,
        port: u16::from_be_bytes([high, low]),
        uid: u32_at(entry, 64)?,
        inode: u32_at(entry, 68)?.into(),
        cgroup: cgroup.and_then(|id| id.first_chunk().copied().map(u64::from_ne_bytes)),
    })
}

/// Parses a line of `tcp`, `udp` and the like (`proc_net(5)`): number, local, remote, state, queues, timer,
/// retransmissions, user, timeout, inode.
fn parse_line(line: &str, tcp: bool) -> Option<OpenPort> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = words.get(1)?.split_once(':')?;
    let (_, remote_port) = words.get(2)?.split_once(':')?;
    let state = u8::from_str_radix(words.get(3)?, 16).ok()?;
    let open = state == open_state(tcp) && remote_port == "0000";
    Some(OpenPort {
        tcp,
        address: printed_address(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        uid: words.get(7)?.parse().ok()?,
        inode: words.get(9)?.parse().ok()?,
        cgroup: None,
    })
    .filter(|_| open)
}

/// Parses an address: groups of four bytes, each printed as a number in the host's byte order.
fn printed_address(hex: &str) -> Option<IpAddr> {
    if !matches!(hex.len(), 8 | 32) {
        return None;
    }
    let words = hex.as_bytes().chunks(8);
    let bytes: Option<Vec<[u8; 4]>> = words
        .map(|word| {
            let number = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
            Some(number.to_ne_bytes())
        })
        .collect();
    let bytes = bytes?.concat();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(v4) => Some(Ipv4Addr::from(v4).into()),
        Err(_) => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::{Child, Command, Stdio};

    use super::super::process_table::own_uid;
    use super::super::skip::skip;
    use super::*;

    /// Ports of this process: tcp, address and number.
    struct Opened {
        expected: Vec<(bool, IpAddr, u16)>,
        /// A connection and a connected datagram socket, which are not open ports.
        connected: [(bool, std::net::SocketAddr); 2],
        _tcp: Vec<TcpListener>,
        _udp: Vec<UdpSocket>,
        _stream: TcpStream,
    }

    fn open() -> Opened {
        let loopbacks = ["127.0.0.1:0", "[::1]:0"];
        let tcp: Vec<_> = loopbacks.iter().flat_map(TcpListener::bind).collect();
        let udp: Vec<_> = loopbacks.iter().flat_map(UdpSocket::bind).collect();
        let stream = TcpStream::connect(tcp[0].local_addr().unwrap()).unwrap();
        let connected = UdpSocket::bind("127.0.0.1:0").unwrap();
        connected.connect(udp[0].local_addr().unwrap()).unwrap();
        let tcp_at = tcp.iter().map(|one| (true, one.local_addr().unwrap()));
        let udp_at = udp.iter().map(|one| (false, one.local_addr().unwrap()));
        let expected = tcp_at.chain(udp_at);
        let expected = expected
            .map(|(tcp, at)| (tcp, at.ip(), at.port()))
            .collect();
        let both = [
            (true, stream.local_addr().unwrap()),
            (false, connected.local_addr().unwrap()),
        ];
        Opened {
            expected,
            connected: both,
            _tcp: tcp,
            _udp: udp.into_iter().chain([connected]).collect(),
            _stream: stream,
        }
    }

    fn shows(found: &[OpenPort], opened: &Opened) {
        for (tcp, address, port) in &opened.expected {
            let here =
                |one: &&OpenPort| (one.tcp, one.address, one.port) == (*tcp, *address, *port);
            let one = found.iter().find(here);
            let one = one.unwrap_or_else(|| panic!("{address} {port} in {found:?}"));
            assert_eq!(one.uid, own_uid(), "{one:?}");
            assert!(one.inode > 0, "{one:?}");
        }
        for (tcp, at) in opened.connected {
            let here =
                |one: &OpenPort| (one.tcp, one.address, one.port) == (tcp, at.ip(), at.port());
            assert!(!found.iter().any(here), "{at} in {found:?}");
        }
    }

    #[test]
    fn the_ports_of_this_process_are_asked_for() {
        let opened = open();
        match open_ports() {
            Ok(found) => shows(&found, &opened),
            Err(cause) => skip(&format!("the kernel does not list its sockets: {cause}")),
        }
    }

    #[test]
    fn the_ports_beside_another_process_are_asked_for_and_no_others() {
        let opened = open();
        let start = |program: &str, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args).stdin(Stdio::piped());
            command.stdout(Stdio::piped()).spawn().unwrap()
        };
        let beside = |mut child: Child| {
            // Its first output proves that it is in the namespace where it stays.
            let mut line = [0; 2];
            child
                .stdout
                .as_mut()
                .unwrap()
                .read_exact(&mut line)
                .unwrap();
            let found = open_ports_beside(child.id().try_into().unwrap());
            drop(child.stdin.take());
            child.wait().unwrap();
            found
        };
        let there = "echo . && cat";
        match beside(start("sh", &["-c", there])) {
            Ok(found) => shows(&found, &opened),
            Err(cause) => return skip(&format!("no entering of namespaces: {cause}")),
        }
        let alone = start("unshare", &["--net", "sh", "-c", there]);
        assert_eq!(beside(alone).unwrap(), []);
        shows(&open_ports().unwrap(), &opened);
    }

    #[test]
    fn the_ports_of_this_process_are_read() {
        let opened = open();
        shows(&open_ports_of(Path::new("/proc/self/net")), &opened);
    }

    #[test]
    fn odd_lines_and_entries_are_nothing() {
        for odd in ["", "sl local", "0: x:y z 0A", "0: 0100007F:1F90", ":"] {
            assert_eq!(parse_line(odd, true), None, "{odd}");
        }
        let connected = "1: 0100007F:1F90 0100007F:C001 01 0:0 0:0 0 0 0 7";
        assert_eq!(parse_line(connected, true), None);
        assert_eq!(printed_address("0100007"), None);
        for length in 0..MESSAGE_BYTES {
            assert_eq!(parse_entry(&vec![10; length], true), None, "{length} bytes");
        }
    }
}
