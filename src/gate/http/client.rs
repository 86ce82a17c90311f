//! One request to another server: allowed addresses, trusted authorities, and the timeout.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderValue, USER_AGENT};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::server_trust::{authority_of, trusted, trusting};
use gatewren_base::sys::{FoundAddress, interface_addresses};

/// The only port that is used on the public Internet: HTTPS.
const PUBLIC_PORT: u16 = 443;

/// The largest IPv6 network that a provider assigns to a site is a /48 (RFC 6177): an address that shares this many
/// bits with an address of this host may be behind the same router.
const SITE_BITS: u8 = 48;

/// The timeout from the name lookup to the last byte.
const WITHIN: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug)]
pub enum OutboundError {
    /// The address is not allowed.
    Address(&'static str),
    /// No connection, or it was lost.
    Connection(io::Error),
    /// The response is not HTTP.
    Http(hyper::Error),
    /// The server answered with an error status.
    Status(StatusCode),
    /// The body is too large or incomplete.
    Body,
    /// The timeout expired.
    Slow,
}

impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(words) => f.write_str(words),
            Self::Connection(cause) => write!(f, "there is no connection to it: {cause}"),
            Self::Http(cause) => write!(f, "it does not speak HTTP: {cause}"),
            Self::Status(status) => write!(f, "it answered {status}, not 200"),
            Self::Body => f.write_str("its answer is too large or incomplete"),
            Self::Slow => write!(f, "it did not answer within {} s", WITHIN.as_secs()),
        }
    }
}

impl std::error::Error for OutboundError {}

impl From<io::Error> for OutboundError {
    fn from(cause: io::Error) -> Self {
        Self::Connection(cause)
    }
}

impl From<hyper::Error> for OutboundError {
    fn from(cause: hyper::Error) -> Self {
        Self::Http(cause)
    }
}

/// The permitted range of plain HTTP, which everyone on the path can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttpScope {
    /// Only this host.
    ThisBox,
    /// Addresses of local networks.
    LocalNetwork,
}

/// A request to another server.
pub struct OutboundRequest<'a> {
    /// The URL; `https://` uses the host's trusted authorities.
    pub address: &'a str,
    /// The permitted range of `http://`.
    pub plain: PlainHttpScope,
    /// Whether only the public Internet is allowed: if an untrusted party chose the URL, the answer must not come
    /// from behind the owner's router or from this host.
    pub only_public: bool,
    /// GET or POST.
    pub method: Method,
    /// Additional headers; a body is sent as JSON.
    pub headers: Vec<(hyper::header::HeaderName, HeaderValue)>,
    /// The body to send.
    pub body: Bytes,
    /// The maximum size of the response body; a larger one is an error. If `None`, the body is not read.
    pub most: Option<usize>,
}

/// A successful response.
#[derive(Debug)]
pub struct OutboundResponse {
    /// The server's address.
    pub from: IpAddr,
    /// Its body.
    pub body: Bytes,
}

impl OutboundRequest<'_> {
    /// Sends the request; any status other than success is an error. Redirects are not followed.
    pub async fn ask(self) -> Result<OutboundResponse, OutboundError> {
        self.ask_trusting(trusted).await
    }

    /// Sends the request to `to`, whatever the URL's host resolves to, but verifies the certificate for that host.
    /// A server with its own authority is trusted only through that authority's file.
    pub async fn ask_at(
        self,
        to: SocketAddr,
        authority: Option<&Path>,
    ) -> Result<OutboundResponse, OutboundError> {
        let roots = match authority {
            Some(file) => authority_of(file)?,
            None => trusted(),
        };
        let asked = tokio::time::timeout(WITHIN, self.asked(|| roots, Some(to)));
        asked.await.unwrap_or(Err(OutboundError::Slow))
    }

    /// Sends the request with other trusted authorities.
    pub(super) async fn ask_trusting(
        self,
        trusted: impl FnOnce() -> RootCertStore,
    ) -> Result<OutboundResponse, OutboundError> {
        let asked = tokio::time::timeout(WITHIN, self.asked(trusted, None));
        asked.await.unwrap_or(Err(OutboundError::Slow))
    }

    async fn asked(
        self,
        trusted: impl FnOnce() -> RootCertStore,
        to: Option<SocketAddr>,
    ) -> Result<OutboundResponse, OutboundError> {
        let none = || OutboundError::Address("the address must have the form https://host/path");
        let uri: Uri = self.address.parse().map_err(|_| none())?;
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(none()),
        };
        let host = uri.host().ok_or_else(none)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        if self.only_public && (port != PUBLIC_PORT || !secure) {
            let words = "on the public Internet, only https:// on port 443 is allowed";
            return Err(OutboundError::Address(words));
        }
        let stream = match to {
            Some(to) => TcpStream::connect(to).await?,
            None if self.only_public => connect_publicly(host, port).await?,
            None => TcpStream::connect((host, port)).await?,
        };
        let from = stream.peer_addr()?.ip().to_canonical();
        let (plain, most) = (self.plain, self.most);
        let request = self.request(&uri)?;
        let body = if secure {
            let name = ServerName::try_from(host.to_owned()).map_err(|_| none())?;
            let stream = TlsConnector::from(trusting(trusted())?)
                .connect(name, stream)
                .await?;
            converse(stream, request, most).await?
        } else {
            plain.may_go_to(from)?;
            converse(stream, request, most).await?
        };
        Ok(OutboundResponse { from, body })
    }

    fn request(self, uri: &Uri) -> Result<Request<Full<Bytes>>, OutboundError> {
        let none = |_| OutboundError::Address("the address contains invalid characters");
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let host = HeaderValue::from_str(authority).map_err(|e| none(e.into()))?;
        let mut request = Request::builder()
            .method(self.method)
            .uri(path)
            .header(HOST, host)
            .header(ACCEPT, "application/json")
            .header(USER_AGENT, concat!("gatewren/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(self.body))
            .map_err(none)?;
        request.headers_mut().extend(self.headers);
        Ok(request)
    }
}

impl PlainHttpScope {
    fn may_go_to(self, peer: IpAddr) -> Result<(), OutboundError> {
        let (may, words) = match self {
            Self::ThisBox => (
                peer.is_loopback(),
                "plain http:// is only allowed to this box itself; use https://",
            ),
            Self::LocalNetwork => (
                is_local(peer),
                "plain http:// is only allowed to this box and the local network; use https://",
            ),
        };
        may.then_some(()).ok_or(OutboundError::Address(words))
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

/// Connects to an address of a host that is public and not in this host's own networks. The name is looked up once:
/// the connection goes to the addresses that were checked.
async fn connect_publicly(host: &str, port: u16) -> Result<TcpStream, OutboundError> {
    let found = lookup_host((host, port)).await?;
    // Fails if the addresses of this host cannot be listed.
    let own = interface_addresses()?;
    let public: Vec<SocketAddr> = found
        .filter(|found| is_public(found.ip()) && !is_near(found.ip(), &own))
        .collect();
    if public.is_empty() {
        let words = "the address is not a public Internet address";
        return Err(OutboundError::Address(words));
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

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    most: Option<usize>,
) -> Result<Bytes, OutboundError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Both futures end with this one, however it ends.
    let answer = async {
        let response = sender.send_request(request).await?;
        if !response.status().is_success() {
            return Err(OutboundError::Status(response.status()));
        }
        let Some(most) = most else {
            return Ok(Bytes::new());
        };
        let body = Limited::new(response.into_body(), most).collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|_| OutboundError::Body)
    };
    tokio::pin!(connection);
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        // The response may have arrived completely before the connection broke.
        ended = &mut connection => match answer.await {
            Ok(body) => Ok(body),
            Err(cause) => ended.map_err(OutboundError::from).and(Err(cause)),
        },
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
        assert!(PlainHttpScope::LocalNetwork.may_go_to(public).is_err());
        assert!(PlainHttpScope::LocalNetwork.may_go_to(lan).is_ok());
        assert!(PlainHttpScope::ThisBox.may_go_to(lan).is_err());
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
    async fn what_a_stranger_names_is_asked_on_port_443_alone() {
        for address in [
            "https://1.1.1.1:22/x",
            "https://1.1.1.1:8443/x",
            "http://1.1.1.1/x",
        ] {
            let asked = OutboundRequest {
                address,
                plain: PlainHttpScope::LocalNetwork,
                only_public: true,
                method: Method::GET,
                headers: Vec::new(),
                body: Bytes::new(),
                most: Some(1),
            };
            let refused = asked.ask_trusting(RootCertStore::empty).await.unwrap_err();
            assert!(refused.to_string().contains("port 443"), "{refused}");
        }
    }

    #[tokio::test]
    async fn what_a_stranger_names_is_asked_on_the_public_internet_alone() {
        for host in ["127.0.0.1", "localhost", "10.0.0.1"] {
            let refused = connect_publicly(host, 443).await.unwrap_err();
            assert!(
                matches!(refused, OutboundError::Address(_)),
                "{host}: {refused}"
            );
        }
    }
}
