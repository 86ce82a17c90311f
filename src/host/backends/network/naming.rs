//! The host's name resolution: its servers, which program configures them, and `/etc/hosts`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::helper_client::{NameServers, Operation};
use gatewren_base::sys::neutralise;

use super::super::bus::BusObject;
use super::super::error::{BackendError, ErrorKind};
use super::super::host::resolver;
use super::super::request::ask;
use super::reach::Network;

/// systemd-resolved on the bus (org.freedesktop.resolve1(5)).
const RESOLVED: BusObject<'static> = BusObject {
    service: "org.freedesktop.resolve1",
    path: "/org/freedesktop/resolve1",
    interface: "org.freedesktop.resolve1.Manager",
};

/// Exists while it runs; a call on the bus would start it.
const RESOLVED_RUNS: &str = "run/systemd/resolve/resolv.conf";

/// Programs that write `/etc/resolv.conf`, with the sign in its link target or comments.
const WRITERS: [(&str, &str); 6] = [
    ("BEGIN gatewren", "gatewren"),
    ("systemd/resolve", "systemd-resolved"),
    ("NetworkManager", "NetworkManager"),
    ("resolvconf", "resolvconf"),
    ("dhclient", "dhclient"),
    ("dhcpcd", "dhcpcd"),
];

/// The timeout for setting name servers: the new ones are tested before and after, and so are the
/// former ones.
const PATIENCE: Duration = Duration::from_mins(2);

/// The maximum number of lines of `/etc/hosts` in a result.
const HOSTS: usize = 200;

/// The host's name resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Naming {
    /// The servers in the order in which they are asked; with systemd-resolved, those behind it.
    pub servers: Vec<String>,
    /// The search domains for short names.
    pub search: Vec<String>,
    /// The program that writes `/etc/resolv.conf`, such as `systemd-resolved`; absent if it seems
    /// to be written by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_by: Option<&'static str>,
    /// The servers and domains of each interface in systemd-resolved, sorted; absent without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<LinkNaming>>,
    /// The entries of `/etc/hosts` in order, except those for the host itself.
    pub hosts: Vec<NamedHost>,
}

/// The name servers of an interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct LinkNaming {
    /// The interface; absent for global settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// Its servers.
    pub servers: Vec<String>,
    /// Its domains; one that begins with `~` only routes queries.
    pub domains: Vec<String>,
}

/// A line of `/etc/hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamedHost {
    /// The address.
    pub address: String,
    /// Its names.
    pub names: Vec<String>,
}

impl Network {
    /// Returns the host's name resolution.
    pub async fn naming(&self) -> Naming {
        let found = resolver(&self.tree);
        let hosts = self.tree.text("etc/hosts").unwrap_or_default();
        Naming {
            servers: found.servers,
            search: found.search,
            written_by: self.writer(),
            links: self.links().await,
            hosts: named_hosts(&hosts),
        }
    }

    /// Returns the name resolution of one interface, if systemd-resolved runs.
    ///
    /// # Errors
    /// When the interface does not exist.
    pub async fn naming_of(&self, interface: &str) -> Result<Naming, BackendError> {
        let all = self.tree.names("sys/class/net");
        if !all.iter().any(|name| name == interface) {
            let shown = neutralise(interface);
            let words = format!(
                "there is no interface {shown}; available: {}",
                all.join(", ")
            );
            // Not NotFound: that is for containers.
            return Err(BackendError::new(ErrorKind::Refused, words));
        }
        let mut naming = self.naming().await;
        if let Some(links) = &mut naming.links {
            links.retain(|link| link.interface.as_deref() == Some(interface));
        }
        Ok(naming)
    }

    /// Sets the name servers, or lets the network provide them, and returns the new name
    /// resolution.
    ///
    /// # Errors
    /// When the owner's file does not allow it, when another program would overwrite the change,
    /// and when none of the servers answers.
    pub async fn set_servers(
        &self,
        servers: NameServers,
        reference: &str,
    ) -> Result<Naming, BackendError> {
        let operation = Operation::SetNameServers { servers };
        ask(&self.helper, operation, PATIENCE, reference).await?;
        Ok(self.naming().await)
    }

    fn writer(&self) -> Option<&'static str> {
        let link = self.tree.link("etc/resolv.conf").unwrap_or_default();
        let text = self.tree.text("etc/resolv.conf").unwrap_or_default();
        let comments = text.lines().filter(|line| line.starts_with('#'));
        let texts: Vec<&str> = [link.as_str()].into_iter().chain(comments).collect();
        let betrays = |sign: &str| texts.iter().any(|text| text.contains(sign));
        let found = WRITERS.iter().find(|(sign, _)| betrays(sign));
        found.map(|(_, name)| *name)
    }

    async fn links(&self) -> Option<Vec<LinkNaming>> {
        if !self.tree.has(RESOLVED_RUNS) {
            return None;
        }
        let servers = self.bus.property(RESOLVED, "DNS").await.ok()?;
        let domains = self.bus.property(RESOLVED, "Domains").await;
        let names = interfaces(&self.tree.names("sys/class/net"), |name| {
            self.tree.number(&format!("sys/class/net/{name}/ifindex"))
        });
        Some(by_link(servers, domains.unwrap_or_default(), &names))
    }
}

fn interfaces(names: &[String], index: impl Fn(&str) -> Option<i32>) -> BTreeMap<i32, String> {
    let numbered = names
        .iter()
        .filter_map(|name| Some((index(name)?, name.clone())));
    numbered.collect()
}

/// Joins (interface, family, address) and (interface, domain, routing only).
fn by_link(
    servers: Vec<(i32, i32, Vec<u8>)>,
    domains: Vec<(i32, String, bool)>,
    names: &BTreeMap<i32, String>,
) -> Vec<LinkNaming> {
    let mut links: BTreeMap<i32, LinkNaming> = BTreeMap::new();
    let nothing = |index: i32| LinkNaming {
        interface: names.get(&index).cloned(),
        servers: Vec::new(),
        domains: Vec::new(),
    };
    for (index, _, bytes) in servers {
        if let Some(address) = address(&bytes) {
            let link = links.entry(index).or_insert_with(|| nothing(index));
            link.servers.push(address.to_string());
        }
    }
    for (index, domain, only_routes) in domains {
        let link = links.entry(index).or_insert_with(|| nothing(index));
        let sign = if only_routes { "~" } else { "" };
        link.domains.push(format!("{sign}{}", neutralise(&domain)));
    }
    let mut links: Vec<LinkNaming> = links.into_values().collect();
    links.sort();
    links
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(Ipv4Addr::from);
    let six = <[u8; 16]>::try_from(bytes).map(Ipv6Addr::from);
    four.map(IpAddr::from).or(six.map(IpAddr::from)).ok()
}

/// Parses hosts(5), without the host's own entries.
fn named_hosts(text: &str) -> Vec<NamedHost> {
    let lines = text.lines().filter_map(|line| {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        let own = address.is_loopback() || address.is_multicast();
        let names = words.map(|name| neutralise(name).into_owned()).collect();
        (!own).then(|| NamedHost {
            address: address.to_string(),
            names,
        })
    });
    lines.take(HOSTS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_of_each_interface_are_told() {
        let (ipv4, ipv6) = (2, 10);
        let servers = vec![
            (2, ipv4, vec![192, 168, 1, 1]),
            (0, ipv4, vec![9, 9, 9, 9]),
            (2, ipv6, vec![1]),
        ];
        let domains = vec![(2, "lan".to_owned(), false), (3, "vpn".to_owned(), true)];
        let names = interfaces(&["eth0".to_owned()], |_| Some(2));
        let links = by_link(servers, domains, &names);
        let json = serde_json::to_value(&links).unwrap();
        let expected = serde_json::json!([
            { "servers": [], "domains": ["~vpn"] },
            { "servers": ["9.9.9.9"], "domains": [] },
            { "interface": "eth0", "servers": ["192.168.1.1"], "domains": ["lan"] }
        ]);
        assert_eq!(json, expected);
    }

    #[test]
    fn the_file_of_hosts_is_read() {
        let text = "127.0.0.1 localhost\n192.168.1.9 nas nas.lan # at home\n# 1.2.3.4 no\n\
                    ff02::1 ip6-allnodes\nfd00::9\tnas\nx y\n";
        let hosts = named_hosts(text);
        assert_eq!(hosts.len(), 2);
        assert_eq!(
            (hosts[0].address.as_str(), hosts[0].names.join(" ")),
            ("192.168.1.9", "nas nas.lan".to_owned())
        );
    }
}
