//! Access to the metrics without an agent: a scraper with its own token or, if the owner enables it, any process on
//! the host itself.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, COOKIE};
use hyper::http::request::Parts;

use super::bearer::{bearer, to_refusal};
use super::chain::Guard;
use super::host::named_host;
use super::refusal::Refusal;

/// Headers that proxies add: if one is present, the request comes from elsewhere.
const OF_PROXIES: [&str; 7] = [
    "forwarded",
    "via",
    "x-real-ip",
    "true-client-ip",
    "cdn-loop",
    "cf-ray",
    "cf-connecting-ip",
];

/// The same, by prefix.
const OF_PROXIES_BEGIN: [&str; 2] = ["x-forwarded", "tailscale-"];

impl Guard {
    /// Whether this head authorizes reading the metrics; if not, it may still be an agent's.
    ///
    /// Such a request has no rate limit of an agent, so it is charged to its address.
    pub async fn is_scraper(&self, head: &Parts, peer: SocketAddr) -> Result<bool, Refusal> {
        let edge = self.check_edge(&head.headers).await;
        edge.map_err(|refusal| self.charge(peer, refusal))?;
        let shows_nothing = ![AUTHORIZATION, COOKIE]
            .iter()
            .any(|name| head.headers.contains_key(name));
        let known = if shows_nothing {
            self.scrapes_from_loopback() && is_from_this_server(head, peer.ip())
        } else {
            match bearer(&head.headers) {
                Ok(token) => self.identity.is_scraper(token).map_err(to_refusal)?,
                // The agent check reports the error.
                Err(_) => false,
            }
        };
        if known {
            self.check_required(&head.headers)
                .map_err(|refusal| self.charge(peer, refusal))?;
            self.charge_stranger(peer)?;
        }
        Ok(known)
    }
}

/// Whether a request comes from the host itself and was not forwarded: checked by the socket, the requested host
/// name and the headers that proxies add.
fn is_from_this_server(head: &Parts, peer: IpAddr) -> bool {
    let of_proxy = |name: &str| {
        OF_PROXIES.contains(&name) || OF_PROXIES_BEGIN.iter().any(|begin| name.starts_with(begin))
    };
    peer.to_canonical().is_loopback()
        && named_host(head).is_some_and(is_loopback)
        && !head.headers.keys().any(|name| of_proxy(name.as_str()))
}

/// Whether a host name is always loopback; an IPv6 address is in brackets.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn head(host: &str, more: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/metrics").header("host", host);
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn whoever_is_on_the_box_is_told_from_who_comes_through_it() {
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        for host in ["localhost:8443", "127.0.0.1", "[::1]:8443", "LOCALHOST"] {
            assert!(is_from_this_server(&head(host, &[]), here), "{host}");
        }
        for host in [
            "box.lan:8443",
            "192.168.1.5:8443",
            "localhost.evil",
            "[fd00::1]",
        ] {
            assert!(!is_from_this_server(&head(host, &[]), here), "{host}");
        }
        for from in ["192.168.1.5", "::ffff:192.168.1.5", "fd00::1"] {
            let from = from.parse().unwrap();
            assert!(
                !is_from_this_server(&head("localhost", &[]), from),
                "{from}"
            );
        }
        assert!(is_from_this_server(
            &head("localhost", &[]),
            "::ffff:127.0.0.1".parse().unwrap()
        ));
        for name in [
            "X-Forwarded-For",
            "X-Forwarded-Host",
            "Forwarded",
            "Via",
            "X-Real-IP",
            "CF-Ray",
            "Tailscale-User-Login",
        ] {
            let head = head("localhost", &[(name, "x")]);
            assert!(!is_from_this_server(&head, here), "{name}");
        }
    }
}
