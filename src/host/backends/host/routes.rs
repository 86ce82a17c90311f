//! The routes of the main table.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use schemars::JsonSchema;
use serde::Serialize;

use super::super::source::HostTree;

/// `RTF_*` from `route.h` and `ipv6_route.h`.
const UP: u32 = 0x0001;
const REJECT: u32 = 0x0200;
const CACHE: u32 = 0x0100_0000;
const LOCAL: u32 = 0x8000_0000;

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Route {
    /// The destination addresses, such as `10.0.0.0/8`, or `default`.
    pub destination: String,
    /// The next hop; absent if the destination is on this network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<IpAddr>,
    /// The outgoing interface.
    pub interface: String,
    /// The IP version, 4 or 6.
    pub ip_version: u8,
    /// The metric; of several matching routes, the lowest wins.
    pub metric: u32,
}

impl Route {
    /// Whether it is a default route.
    pub fn is_default(&self) -> bool {
        self.destination == "default"
    }
}

/// Returns all routes except those to the host itself and to groups, sorted: default routes by
/// version first, then by destination.
pub fn routes(tree: &HostTree) -> Vec<Route> {
    let text = |file: &str| tree.text(file).unwrap_or_default();
    let (v4, v6) = (text("proc/net/route"), text("proc/net/ipv6_route"));
    let v4 = v4.lines().filter_map(route_v4);
    let mut all: Vec<_> = v4.chain(v6.lines().filter_map(route_v6)).collect();
    all.sort_by_cached_key(|route| (!route.is_default(), route.ip_version, route.clone()));
    all.dedup();
    all
}

/// Interface, destination, gateway, flags, references, uses, metric, mask; addresses are in native
/// byte order.
fn route_v4(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |index: usize| u32::from_str_radix(words.get(index)?, 16).ok();
    let address = |index: usize| Some(Ipv4Addr::from(hex(index)?.to_ne_bytes()));
    let (to, gateway, mask) = (address(1)?, address(2)?, address(7)?);
    usable(hex(3)?).then_some(())?;
    Some(Route {
        destination: destination(to.into(), mask.to_bits().leading_ones()),
        gateway: (!gateway.is_unspecified()).then_some(gateway.into()),
        interface: (*words.first()?).to_owned(),
        ip_version: 4,
        metric: words.get(6)?.parse().ok()?,
    })
}

/// Destination, its prefix, source, its prefix, gateway, metric, references, uses, flags,
/// interface; all in hex.
fn route_v6(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let hex = |index: usize| u32::from_str_radix(words.get(index)?, 16).ok();
    let address = |index: usize| {
        let bits = u128::from_str_radix(words.get(index)?, 16).ok()?;
        Some(Ipv6Addr::from_bits(bits))
    };
    let (to, gateway) = (address(0)?, address(4)?);
    (usable(hex(8)?) && !to.is_multicast()).then_some(())?;
    Some(Route {
        destination: destination(to.into(), hex(1)?),
        gateway: (!gateway.is_unspecified()).then_some(gateway.into()),
        interface: (*words.get(9)?).to_owned(),
        ip_version: 6,
        metric: hex(5)?,
    })
}

fn usable(flags: u32) -> bool {
    flags & UP != 0 && flags & (REJECT | CACHE | LOCAL) == 0
}

fn destination(to: IpAddr, prefix: u32) -> String {
    if prefix == 0 {
        "default".to_owned()
    } else {
        format!("{to}/{prefix}")
    }
}

#[cfg(test)]
mod tests {
    use gatewren_base::sys::Scratch;

    use super::super::recording::record;
    use super::*;

    /// Written by Linux 6.1, without trailing spaces.
    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t000AA8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
        eth0\t00000000\t010AA8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        wg0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n\
        *\t0000FEA9\t00000000\t0200\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
    const V6: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000002 00000007 00450003     eth0
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
ff000000000000000000000000000000 08 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000003 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    #[cfg(target_endian = "little")]
    #[test]
    fn routes_of_both_versions_with_the_default_ones_first() {
        let scratch = Scratch::new();
        let tree = record(
            &scratch,
            &[("proc/net/route", V4), ("proc/net/ipv6_route", V6)],
        );
        let all = routes(&tree);
        let seen: Vec<_> = all
            .iter()
            .map(|route| {
                let gateway = route.gateway.map(|gateway| gateway.to_string());
                let gateway = gateway.unwrap_or_else(|| "-".to_owned());
                format!(
                    "{} {gateway} {} {}",
                    route.destination, route.interface, route.metric
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                "default 192.168.10.1 eth0 100",
                "default fe80::1 eth0 1024",
                "10.0.0.0/8 - wg0 0",
                "192.168.10.0/24 - eth0 100",
                "fd00::/64 - eth0 256",
            ]
        );
    }

    #[test]
    fn odd_lines_are_no_routes() {
        for odd in [
            "",
            "\n\n",
            "eth0 1 2",
            "eth0 zz zz zz zz zz zz zz",
            "\u{fffd}",
        ] {
            assert!(route_v4(odd).is_none() && route_v6(odd).is_none(), "{odd}");
        }
    }
}
