//! The name servers that a host uses.

use std::fmt;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number: resolvers use no more than three (resolv.conf(5)).
const MOST: usize = 3;

/// Addresses of possible name servers, without duplicates; empty if the network provides them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<IpAddr>", into = "Vec<IpAddr>")]
#[schemars(with = "Vec<String>", description = "", extend("maxItems" = MOST))]
pub struct NameServers(Vec<IpAddr>);

/// Addresses that are no valid name servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidServers;

impl NameServers {
    /// The addresses, in the order of use.
    pub fn all(&self) -> &[IpAddr] {
        &self.0
    }
}

impl fmt::Display for InvalidServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "name servers are at most three different addresses of machines, such as 192.168.1.1",
        )
    }
}

impl std::error::Error for InvalidServers {}

impl TryFrom<Vec<IpAddr>> for NameServers {
    type Error = InvalidServers;

    fn try_from(mut all: Vec<IpAddr>) -> Result<Self, InvalidServers> {
        all = all
            .into_iter()
            .map(|address| address.to_canonical())
            .collect();
        let once = |(at, address): (usize, &IpAddr)| {
            !all.iter().skip(at + 1).any(|other| other == address)
        };
        let good = all.len() <= MOST && all.iter().all(|address| is_of_a_machine(*address));
        if good && all.iter().enumerate().all(once) {
            return Ok(Self(all));
        }
        Err(InvalidServers)
    }
}

fn is_of_a_machine(address: IpAddr) -> bool {
    // The addresses of systemd-resolved itself: it would query itself.
    let stubs = [[127, 0, 0, 53], [127, 0, 0, 54]].map(IpAddr::from);
    let everybody = IpAddr::from([255, 255, 255, 255]);
    // A link-local address is useless without the name of its link.
    let of_a_link = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let nobody = address.is_unspecified() || address.is_multicast() || address == everybody;
    !nobody && !of_a_link && !stubs.contains(&address)
}

impl From<NameServers> for Vec<IpAddr> {
    fn from(servers: NameServers) -> Self {
        servers.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_machines() {
        let read = |text: &str| serde_json::from_str::<NameServers>(text);
        for good in [
            r"[]",
            r#"["9.9.9.9"]"#,
            r#"["127.0.0.1","::1","2620:fe::fe"]"#,
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for bad in [
            r#"["0.0.0.0"]"#,
            r#"["::"]"#,
            r#"["224.0.0.1"]"#,
            r#"["255.255.255.255"]"#,
            r#"["127.0.0.53"]"#,
            r#"["::ffff:127.0.0.53"]"#,
            r#"["fe80::1"]"#,
            r#"["1.1.1.1","1.1.1.1"]"#,
            r#"["1.1.1.1","1.1.1.2","1.1.1.3","1.1.1.4"]"#,
            r#"["box.lan"]"#,
            r#"["1.1.1.1:53"]"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
