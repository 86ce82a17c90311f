//! The servers that the HTTP client may connect to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpStream, lookup_host};

use super::client_error::HttpClientError;
use gatewren_portable::FoundAddress;

/// The error for a URL that cannot be used.
pub(super) const URL_FORM: &str = "the address must have the form https://host:port/path";

/// The only port that is used on the public Internet: HTTPS.
const PUBLIC_PORT: u16 = 443;

/// The largest IPv6 network that a provider assigns to a site is a /48 (RFC 6177): an address that shares this many
/// bits with an address of this host may be behind the same router.
const SITE_BITS: u8 = 48;

/// The servers that a client may connect to. Everyone on the path can read plain HTTP.
#[derive(Debug, Clone, Copy)]
pub enum AllowedServers {
    /// Any, over HTTPS.
    Https,
    /// Any over HTTPS, and this host over plain HTTP too.
    HttpsOrThisServer,
    /// Any over HTTPS, and addresses of local networks over plain HTTP too.
    HttpsOrLocalNetwork,
    /// Only the public Internet, over HTTPS: if an untrusted party chose the URL, the answer must not come from
    /// behind the owner's router or from this host, whose addresses the function returns.
    PublicInternet(fn() -> io::Result<Vec<FoundAddress>>),
    /// Those that [`watched_addresses`] accepts: any over HTTPS, and addresses of local networks over plain HTTP too.
    Watched,
    /// This address, over HTTPS, whatever the URL's host resolves to. The certificate is verified for that host.
    At(SocketAddr),
}

impl AllowedServers {
    /// Checks the scheme and the port of a URL.
    pub(super) fn check_url(self, is_secure: bool, port: u16) -> Result<(), HttpClientError> {
        match self {
            Self::PublicInternet(_) if !is_secure || port != PUBLIC_PORT => {
                let words = "on the public Internet, only https:// on port 443 is allowed";
                Err(HttpClientError::Address(words))
            }
            Self::Https | Self::At(_) if !is_secure => Err(HttpClientError::Address(URL_FORM)),
            _ => Ok(()),
        }
    }

    /// Connects to an allowed address of a host.
    pub(super) async fn connect(self, host: &str, port: u16) -> Result<TcpStream, HttpClientError> {
        Ok(match self {
            Self::At(address) => TcpStream::connect(address).await?,
            Self::PublicInternet(own) => connect_publicly(host, port, own).await?,
            Self::Watched => {
                TcpStream::connect(watched_addresses(host, port).await?.as_slice()).await?
            }
            _ => TcpStream::connect((host, port)).await?,
        })
    }

    /// Checks the address of a server to which a request is sent over plain HTTP.
    pub(super) fn check_plain(self, peer: IpAddr) -> Result<(), HttpClientError> {
        let (may, words) = match self {
            Self::HttpsOrThisServer => (
                peer.is_loopback(),
                "plain http:// is only allowed to this server itself; use https://",
            ),
            Self::HttpsOrLocalNetwork | Self::Watched => (
                is_local(peer),
                "plain http:// is only allowed to this server and the local network; use https://",
            ),
            Self::Https | Self::PublicInternet(_) | Self::At(_) => (false, URL_FORM),
        };
        may.then_some(()).ok_or(HttpClientError::Address(words))
    }
}

/// Whether an address belongs to this host or to a local network: the addresses that the systemd unit lets the
/// front reach.
pub fn is_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let shared = matches!(ip.octets(), [100, 64..=127, ..]);
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || shared
        }
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

/// Looks up the addresses of a server that an agent has chosen, once: a connection goes to the addresses that were
/// checked. No link-local address is accepted, because a cloud's metadata has one, and none that is no single machine.
///
/// # Errors
/// When the lookup fails, and when no address is left.
pub async fn watched_addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, HttpClientError> {
    let found = lookup_host((host, port)).await?;
    let allowed: Vec<SocketAddr> = found.filter(|found| is_watchable(found.ip())).collect();
    if allowed.is_empty() {
        let words = "link-local, multicast and unspecified addresses are not allowed";
        return Err(HttpClientError::Address(words));
    }
    Ok(allowed)
}

/// Whether an address can be that of a watched server.
fn is_watchable(address: IpAddr) -> bool {
    /// The address of the metadata of some clouds over IPv6.
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let is_one = !ip.is_multicast() && !ip.is_broadcast() && ip.octets()[0] != 0;
            is_one && !ip.is_link_local()
        }
        IpAddr::V6(ip) => {
            let is_one = !ip.is_multicast() && !ip.is_unspecified();
            is_one && !ip.is_unicast_link_local() && ip != METADATA
        }
    }
}

/// Connects to an address of a host that is public and not in this host's own networks. The name is looked up once:
/// the connection goes to the addresses that were checked.
async fn connect_publicly(
    host: &str,
    port: u16,
    own: fn() -> io::Result<Vec<FoundAddress>>,
) -> Result<TcpStream, HttpClientError> {
    let found = lookup_host((host, port)).await?;
    // Fails if the addresses of this host cannot be listed.
    let own = own()?;
    let public: Vec<SocketAddr> = found
        .filter(|found| is_public(found.ip()) && !is_near(found.ip(), &own))
        .collect();
    if public.is_empty() {
        let words = "the address is not a public Internet address";
        return Err(HttpClientError::Address(words));
    }
    Ok(TcpStream::connect(public.as_slice()).await?)
}

/// Whether an address is public: it is in no range that the registries of special addresses (RFC 6890) reserve, and
/// in none that can embed a private IPv4 address.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// Whether an address belongs to this host or may be behind the same router: it is in the network of one of the
/// host's addresses. A site may have many adjacent IPv6 networks.
fn is_near(address: IpAddr, own: &[FoundAddress]) -> bool {
    own.iter()
        .any(|own| match (address.to_canonical(), own.address) {
            (IpAddr::V4(ip), IpAddr::V4(here)) => {
                let apart = ip.to_bits() ^ here.to_bits();
                apart.leading_zeros() >= u32::from(own.prefix)
            }
            (IpAddr::V6(ip), IpAddr::V6(here)) => {
                let apart = ip.to_bits() ^ here.to_bits();
                apart.leading_zeros() >= u32::from(own.prefix.min(SITE_BITS))
            }
            _ => false,
        })
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let kept = matches!(
        ip.octets(),
        [0 | 240..=255, ..]
            | [100, 64..=127, ..]
            | [192, 0, 0, _]
            | [192, 88, 99, _]
            | [198, 18 | 19, ..]
    );
    let local = ip.is_loopback() || ip.is_private() || ip.is_link_local();
    !(kept || local || ip.is_multicast() || ip.is_documentation())
}

/// Only `2000::/3` is assigned. In it, `2001::/23` holds tunnels (Teredo) and tests, `2002::/16` is 6to4, and
/// `2001:db8::/32` and `3fff::/20` are for documentation.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_network_is_what_the_unit_lets_be_reached() {
        for local in [
            "127.0.0.1",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.3.4",
            "169.254.1.1",
            "100.64.0.1",
            "::1",
            "fe80::1",
            "fd12::1",
            "::ffff:192.168.1.1",
        ] {
            assert!(is_local(local.parse().unwrap()), "{local}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "100.63.0.1",
            "2001:db8::1",
            "::ffff:8.8.8.8",
            "0.0.0.0",
        ] {
            assert!(!is_local(public.parse().unwrap()), "{public}");
        }
        let public = "8.8.8.8".parse().unwrap();
        let lan = "192.168.1.1".parse().unwrap();
        assert!(
            AllowedServers::HttpsOrLocalNetwork
                .check_plain(public)
                .is_err()
        );
        assert!(AllowedServers::HttpsOrLocalNetwork.check_plain(lan).is_ok());
        assert!(AllowedServers::HttpsOrThisServer.check_plain(lan).is_err());
    }

    #[test]
    fn the_public_internet_is_nothing_that_is_kept_for_something_else() {
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "2001:200::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fd00::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
    }

    #[test]
    fn what_is_behind_the_same_router_is_not_asked_for_a_stranger() {
        let own = |address: &str, prefix| FoundAddress {
            interface: "eth0".to_owned(),
            address: address.parse().unwrap(),
            prefix,
        };
        let own = [
            own("2a02:8109:abcd:1200::5", 64),
            own("2a02:8109:ffff::7", 128),
            own("80.1.2.3", 24),
        ];
        for near in [
            "2a02:8109:abcd:1200::5",
            "2a02:8109:abcd:1200:1:2:3:4",
            // Another network of the same site.
            "2a02:8109:abcd:12ff::1",
            "2a02:8109:ffff::8",
            "80.1.2.250",
            "::ffff:80.1.2.1",
        ] {
            let near: IpAddr = near.parse().unwrap();
            assert!(is_public(near) && is_near(near, &own), "{near}");
        }
        for far in [
            "2a02:8109:abce::1",
            "2606:4700::1111",
            "80.1.3.1",
            "1.1.1.1",
        ] {
            assert!(!is_near(far.parse().unwrap(), &own), "{far}");
        }
    }

    #[tokio::test]
    async fn a_watch_asks_no_metadata_and_no_group_of_machines() {
        for host in [
            "169.254.169.254",
            "fd00:ec2::254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "0.0.0.0",
            "::",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            let refused = watched_addresses(host, 80).await.unwrap_err();
            assert!(
                matches!(refused, HttpClientError::Address(_)),
                "{host}: {refused}"
            );
        }
        for host in ["127.0.0.1", "10.0.0.1", "localhost", "::1"] {
            assert!(watched_addresses(host, 80).await.is_ok(), "{host}");
        }
        let public = "8.8.8.8".parse().unwrap();
        assert!(AllowedServers::Watched.check_plain(public).is_err());
    }

    #[tokio::test]
    async fn what_a_stranger_names_is_asked_on_the_public_internet_alone() {
        for host in ["127.0.0.1", "localhost", "10.0.0.1"] {
            let refused = connect_publicly(host, 443, || Ok(Vec::new()))
                .await
                .unwrap_err();
            assert!(
                matches!(refused, HttpClientError::Address(_)),
                "{host}: {refused}"
            );
        }
    }
}
