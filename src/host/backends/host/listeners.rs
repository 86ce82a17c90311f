//! The host's open ports and who opened them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::Transport;
use gatewren_base::sys::{OpenPort, cgroup_paths, open_ports, open_ports_of, socket_programs};

use super::super::source::{HostTree, label};

/// The first port that the kernel assigns by itself, unless `ip_local_port_range` differs.
const FIRST_EPHEMERAL: u16 = 32_768;

/// An open port of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct HostListener {
    /// Its protocol.
    pub protocol: Transport,
    /// Its port number.
    pub port: u16,
    /// The address it is bound to; `0.0.0.0` or `::` for all.
    pub address: IpAddr,
    /// The user who opened it, or the uid if it has no name.
    pub user: String,
    /// The systemd unit that opened it, if the kernel reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The container on the host's network that opened it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The name of the program that has it, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Whether it is below the ephemeral ports, which come and go.
    #[serde(skip)]
    pub is_permanent: bool,
}

/// The open ports, as the kernel reports them.
#[derive(Debug)]
pub struct OpenPorts(Vec<OpenPort>);

impl OpenPorts {
    /// Returns all open ports. For a recorded tree, or if the kernel cannot be asked, they are read
    /// from `/proc`.
    pub fn of(tree: &HostTree) -> Self {
        let is_own_tree = tree.path("") == Path::new("/");
        let asked = is_own_tree.then(open_ports).and_then(Result::ok);
        Self(asked.unwrap_or_else(|| open_ports_of(&tree.path("proc/net"))))
    }

    /// Returns the inode numbers of their sockets.
    pub fn sockets(&self) -> BTreeSet<u64> {
        self.0.iter().map(|one| one.inode).collect()
    }

    /// Returns the programs that have them, as far as this process may see.
    pub fn programs(&self, tree: &HostTree) -> BTreeMap<u64, String> {
        socket_programs(&tree.path("proc"), self.sockets())
    }

    /// Returns their descriptions, sorted by protocol, port and address.
    pub fn describe(&self, tree: &HostTree, programs: &BTreeMap<u64, String>) -> Vec<HostListener> {
        describe(tree, &self.0, programs)
    }
}

fn describe(
    tree: &HostTree,
    open: &[OpenPort],
    programs: &BTreeMap<u64, String>,
) -> Vec<HostListener> {
    let users = users(tree);
    let groups = cgroup_paths(&open.iter().filter_map(|one| one.cgroup).collect());
    let ephemeral = first_ephemeral(tree);
    let describe = |one: &OpenPort| {
        let group = one.cgroup.and_then(|id| groups.get(&id));
        let user = users.get(&one.uid).cloned();
        HostListener {
            protocol: if one.tcp {
                Transport::Tcp
            } else {
                Transport::Udp
            },
            port: one.port,
            address: one.address,
            user: user.unwrap_or_else(|| one.uid.to_string()),
            unit: group.and_then(|path| unit(path)),
            container: group.and_then(|path| container(path)),
            program: programs.get(&one.inode).and_then(|name| label(name)),
            is_permanent: one.port < ephemeral,
        }
    };
    let mut all: Vec<_> = open.iter().map(describe).collect();
    all.sort();
    all.dedup();
    all
}

fn first_ephemeral(tree: &HostTree) -> u16 {
    let range = tree.text("proc/sys/net/ipv4/ip_local_port_range");
    let first = range
        .as_deref()
        .and_then(|range| range.split_whitespace().next());
    first
        .and_then(|first| first.parse().ok())
        .unwrap_or(FIRST_EPHEMERAL)
}

/// Returns the names of users by uid.
pub fn users(tree: &HostTree) -> BTreeMap<u32, String> {
    names(&tree.text("etc/passwd").unwrap_or_default())
}

/// Parses passwd(5); the first of several names is used.
fn names(passwd: &str) -> BTreeMap<u32, String> {
    let mut users = BTreeMap::new();
    for line in passwd.lines() {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty());
        let uid = fields.nth(1).and_then(|uid| uid.parse().ok());
        if let (Some(name), Some(uid)) = (name, uid) {
            users.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    users
}

/// Returns the unit of the system manager: the first in the path, because a user's manager has
/// units below its own. Sockets that systemd itself opened for another unit have no unit.
pub fn unit(group: &str) -> Option<String> {
    let is_unit = |name: &&str| matches!(name.rsplit_once('.'), Some((_, "service" | "scope")));
    let unit = group.split('/').find(is_unit)?;
    (unit != "init.scope" && container(group).is_none()).then(|| unit.to_owned())
}

/// LXC puts the container's name into its cgroup's name; Proxmox has a cgroup for each id.
pub fn container(group: &str) -> Option<String> {
    let mut parts = group
        .split('/')
        .skip_while(|name| name.is_empty())
        .peekable();
    let proxmox = parts.peek() == Some(&"lxc");
    let name = parts.find_map(|part| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let named = part.strip_prefix("lxc.payload.");
        named.or_else(|| (proxmox && is_number).then_some(part))
    });
    name.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    /// Written by Linux 6.1: a listener on all addresses, one on the loopback, a connection, and a
    /// datagram socket with a port that the kernel chose.
    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        \x20  0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1001 1\n\
        \x20  1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1002 1\n\
        \x20  2: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 1003 1\n";
    const UDP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        \x20  9: 00000000:9C41 00000000:0000 07 00000000:00000000 00:00000000 00000000    33        0 1004 2\n";

    #[cfg(target_endian = "little")]
    fn with_programs(tree: &HostTree) -> Vec<HostListener> {
        let open = OpenPorts::of(tree);
        open.describe(tree, &open.programs(tree))
    }

    #[test]
    fn ports_are_told_with_who_opened_them() {
        let scratch = Scratch::new();
        let tree = record(
            &scratch,
            &[
                ("proc/net/tcp", TCP),
                ("proc/net/udp", UDP),
                ("proc/70/fd/3", "-> socket:[1001]"),
                ("proc/70/fd/4", "-> /dev/null"),
                ("proc/70/comm", "ssh\u{1b}d\n"),
                (
                    "etc/passwd",
                    "root:x:0:0::/root:/bin/sh\nwren:x:1000:1000::/:/bin/sh\n",
                ),
            ],
        );
        let all = with_programs(&tree);
        let seen: Vec<_> = all
            .iter()
            .map(|one| (one.protocol, one.port, one.user.as_str(), one.is_permanent))
            .collect();
        let expected = [
            (Transport::Tcp, 22, "root", true),
            (Transport::Tcp, 8080, "wren", true),
            (Transport::Udp, 40_001, "33", false),
        ];
        assert_eq!(seen, expected);
        let program = all[0].program.as_deref().unwrap();
        assert!(
            program.starts_with("ssh") && !program.contains('\u{1b}'),
            "{program:?}"
        );
        assert_eq!(all[1].program, None);
    }

    #[test]
    fn a_port_of_this_process_is_known_as_its_own() {
        let opened = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = opened.local_addr().unwrap();
        let all = with_programs(&HostTree::of_this_machine());
        let one = all.iter().find(|one| {
            one.protocol == Transport::Tcp && one.port == at.port() && one.address == at.ip()
        });
        // The name may vary: a child that another test is just starting has the socket too.
        assert!(one.unwrap().program.is_some(), "{one:?}");
    }

    #[test]
    fn units_and_containers_are_told_by_their_groups() {
        let units = [
            ("/system.slice/nginx.service", Some("nginx.service")),
            (
                "/system.slice/system-getty.slice/getty@tty1.service",
                Some("getty@tty1.service"),
            ),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/x.service",
                Some("user@1000.service"),
            ),
            (
                "/user.slice/user-1000.slice/session-3.scope",
                Some("session-3.scope"),
            ),
            ("/init.scope", None),
            ("/", None),
            ("/lxc.payload.web/system.slice/nginx.service", None),
        ];
        for (group, expected) in units {
            assert_eq!(unit(group).as_deref(), expected, "{group}");
        }
        let containers = [
            ("/lxc.payload.web/init.scope", Some("web")),
            ("/lxc/101/ns/init.scope", Some("101")),
            ("/system.slice/lxc/101", None),
            ("/lxc/web", None),
            ("/lxc/", None),
            ("/", None),
        ];
        for (group, expected) in containers {
            assert_eq!(container(group).as_deref(), expected, "{group}");
        }
    }

    #[test]
    fn odd_input_is_nobody() {
        assert!(names("\n:x:1\nroot\nroot:x\nroot:x:y:0\n").is_empty());
        assert!(with_programs(&HostTree::below("/no/such/place".as_ref())).is_empty());
    }
}
