//! The host's DNS resolver settings.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::HostTree;

/// The address of systemd-resolved's stub; the servers behind it are in a separate file.
const STUB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 53));

/// The DNS resolver settings (resolv.conf(5)).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Resolver {
    /// The servers, in the order in which they are asked.
    pub servers: Vec<String>,
    /// The search domains for short names.
    pub search: Vec<String>,
}

/// Reads the resolver settings; with systemd-resolved, the servers behind it.
pub fn resolver(tree: &HostTree) -> Resolver {
    let read = |file: &str| parse(&tree.text(file).unwrap_or_default());
    let own = read("etc/resolv.conf");
    if own.servers != [STUB.to_string()] {
        return own;
    }
    let behind = read("run/systemd/resolve/resolv.conf");
    if behind.servers.is_empty() {
        own
    } else {
        behind
    }
}

fn parse(text: &str) -> Resolver {
    let mut found = Resolver::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => found.servers.extend(words.next().map(str::to_owned)),
            // The last one wins.
            Some("search" | "domain") => found.search = words.map(str::to_owned).collect(),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    #[test]
    fn the_servers_behind_the_stub_are_told() {
        let scratch = Scratch::new();
        let tree = record(
            &scratch,
            &[(
                "etc/resolv.conf",
                "# by hand\nnameserver 127.0.0.53\noptions edns0\n",
            )],
        );
        assert_eq!(resolver(&tree).servers, ["127.0.0.53"]);
        let behind = "nameserver 192.168.1.1\nnameserver fe80::1%eth0\nsearch lan home.arpa\n";
        record(&scratch, &[("run/systemd/resolve/resolv.conf", behind)]);
        let found = resolver(&tree);
        assert_eq!(found.servers, ["192.168.1.1", "fe80::1%eth0"]);
        assert_eq!(found.search, ["lan", "home.arpa"]);
    }

    #[test]
    fn odd_files_name_nobody() {
        for odd in [
            "",
            "nameserver",
            "nameserver\n\n",
            "\u{fffd}",
            "NAMESERVER 1.1.1.1",
        ] {
            assert_eq!(parse(odd), Resolver::default(), "{odd}");
        }
        assert_eq!(parse("domain a\nsearch b c\n").search, ["b", "c"]);
    }
}
