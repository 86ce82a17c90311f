//! Checks Host and Origin: a web page must not reach the server under a foreign name (DNS rebinding).

use std::net::IpAddr;

use hyper::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{StatusCode, Uri};

use super::refusal::Refusal;

/// The host's own names and addresses, and the origins that the owner allows.
#[derive(Debug, Clone, Default)]
pub struct AllowedHosts {
    /// The names in lower case, without port.
    pub names: Vec<String>,
    /// The addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// Further origins, such as `https://inspector.example`.
    pub origins: Vec<String>,
}

impl AllowedHosts {
    /// Refuses a Host that is not this server's (421), and a repeated one (400).
    pub fn check_host(&self, head: &Parts) -> Result<(), Refusal> {
        let authority = authority(&head.uri, &head.headers)?;
        let host = host_of(authority).ok_or_else(|| {
            bad_host("the Host header, or the request target, must be a host with an optional port")
        })?;
        if self.is_ours(host) {
            return Ok(());
        }
        let message = format!(
            "this server does not accept the host name {:?}; use its own name or address, or ask the owner to \
             add the name to access.allowed_hosts",
            shortened(host)
        );
        Err(Refusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "unknown_host",
            message,
        ))
    }

    /// Refuses an Origin that is neither this server's nor allowed (403). A missing one is accepted: only browsers
    /// send it.
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let (Some(origin), more) = (origins.next(), origins.next()) else {
            return Ok(());
        };
        let origin = origin.to_str().unwrap_or_default();
        if more.is_none() && self.allows_origin(origin) {
            return Ok(());
        }
        let message = format!(
            "requests from the origin {:?} are not allowed; the owner can add it to access.allowed_origins",
            shortened(origin)
        );
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            message,
        ))
    }

    /// Whether a web page of this origin may read the answers.
    pub fn allows_origin(&self, origin: &str) -> bool {
        let listed = self.lists_origin(origin);
        let page = origin
            .strip_prefix("https://")
            .or_else(|| origin.strip_prefix("http://"));
        listed
            || page
                .and_then(host_of)
                .is_some_and(|host| self.is_ours(host))
    }

    /// Whether the owner has listed this origin. Only such a page may use its user's cookie: a page of the host itself
    /// on another port is another program, which the owner has not chosen.
    pub fn lists_origin(&self, origin: &str) -> bool {
        self.origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }

    fn is_ours(&self, host: &str) -> bool {
        let in_brackets = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let address = match in_brackets {
            Some(inside) => inside.parse().map(IpAddr::V6),
            None => host.parse().map(IpAddr::V4),
        };
        if let Ok(address) = address {
            return self.addresses.contains(&address.to_canonical());
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        self.names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Refuses requests that a browser sends on behalf of another page (403), wherever a cookie authenticates, because
/// browsers add cookies by themselves.
///
/// The cookie is `SameSite=Strict`, but by that rule all ports of a host are the same site, and on a home server
/// each port is another program. So the origin must match including the port. Browsers send it with every POST and
/// DELETE. For a GET, which they send without it, `Sec-Fetch-Site` (Fetch Metadata) states whether the page was of
/// the same origin. Programs send neither, and a page cannot remove these headers.
pub fn check_own_page(target: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let ours = authority(target, headers)?;
    let is_ours = |origin: &HeaderValue| {
        let origin = origin
            .to_str()
            .ok()
            .and_then(|o| o.strip_prefix("https://"));
        origin.is_some_and(|page| page.eq_ignore_ascii_case(ours.trim_end_matches(":443")))
    };
    let is_same = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if headers.get_all(ORIGIN).iter().all(is_ours)
        && headers.get_all("sec-fetch-site").iter().all(is_same)
    {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::FORBIDDEN,
        "other_page",
        "a session cookie is valid only for this server's own page; use an agent's token elsewhere",
    ))
}

/// Whether a page that the owner has listed sent this request, by its only Origin. Browsers send the header with every
/// request of a page to another origin.
pub fn is_of_listed_page(listed: &[String], headers: &HeaderMap) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return false;
    };
    let origin = origin.to_str().unwrap_or_default();
    listed
        .iter()
        .any(|allowed| allowed.eq_ignore_ascii_case(origin))
}

/// The origin that a request was sent to, in normalized form: lower case, and without the default port of https.
/// The chain has already checked the host.
pub fn own_origin(head: &Parts) -> Result<String, Refusal> {
    let authority = authority(&head.uri, &head.headers)?.to_ascii_lowercase();
    let authority = authority.strip_suffix(":443").unwrap_or(&authority);
    Ok(format!("https://{}", authority.trim_end_matches(':')))
}

/// The authority of an HTTP/2 request, or the only Host header of an HTTP/1.1 request.
fn authority<'a>(target: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Refusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let header = hosts.next();
    if hosts.next().is_some() {
        return Err(bad_host("duplicate Host header; send exactly one"));
    }
    let unreadable = |_| bad_host("the Host header must be visible ASCII");
    let header = header
        .map(|value| value.to_str().map_err(unreadable))
        .transpose()?;
    let target = target.authority().map(Authority::as_str);
    match (target, header) {
        (Some(target), Some(host)) if !target.eq_ignore_ascii_case(host) => Err(bad_host(
            "the Host header and the request's target name different hosts",
        )),
        (Some(one), _) | (None, Some(one)) => Ok(one),
        (None, None) => Err(bad_host("the Host header is missing")),
    }
}

/// The host that a request names, without its port.
pub fn named_host(head: &Parts) -> Option<&str> {
    host_of(authority(&head.uri, &head.headers).ok()?)
}

/// Parses the host of `host[:port]` (RFC 9110, section 7.2), with the brackets of an IPv6 address; `None` if there
/// is also a user, a path or anything else.
fn host_of(authority: &str) -> Option<&str> {
    let end = match authority.find(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let sound = |b: u8| {
        b.is_ascii_graphic() && !matches!(b, b'/' | b'?' | b'#' | b'@' | b'\\' | b'"' | b'<' | b'>')
    };
    let port_is_sound = match port.strip_prefix(':') {
        // A colon without a port is allowed.
        Some(digits) => {
            digits.bytes().all(|b| b.is_ascii_digit())
                && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
        None => port.is_empty(),
    };
    (!host.is_empty() && host.bytes().all(sound) && port_is_sound).then_some(host)
}

fn bad_host(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "bad_host", message)
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn hosts() -> AllowedHosts {
        AllowedHosts {
            names: vec!["localhost".into(), "box.lan".into()],
            addresses: vec!["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()],
            origins: vec!["https://inspector.example".into()],
        }
    }

    fn head(target: &str, host_headers: &[&str]) -> Parts {
        let mut request = Request::builder().uri(target);
        for host in host_headers {
            request = request.header(HOST, *host);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_host_that_is_not_ours_is_421() {
        for ours in [
            "localhost:8443",
            "BOX.lan",
            "box.lan.",
            "127.0.0.1:1",
            "[::1]:8443",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(hosts().check_host(&head("/mcp", &[ours])).is_ok(), "{ours}");
        }
        for evil in [
            "evil.example.com",
            "box.lan.evil.com",
            "box.lan..",
            "[box.lan]",
            "[127.0.0.1]",
            "10.0.0.1",
            "localhost.evil",
        ] {
            let refusal = hosts().check_host(&head("/mcp", &[evil])).unwrap_err();
            assert_eq!(refusal.status, StatusCode::MISDIRECTED_REQUEST, "{evil}");
        }
    }

    #[test]
    fn no_host_two_hosts_or_two_opinions_are_400() {
        let cases = [
            head("/mcp", &[]),
            head("/mcp", &["localhost", "localhost"]),
            head("https://localhost/mcp", &["box.lan"]),
            head("/mcp", &["a b"]),
            head("/mcp", &["evil@box.lan"]),
            head("/mcp", &["localhost:x"]),
            head("/mcp", &["localhost:65536"]),
            head("https://evil@box.lan/mcp", &[]),
        ];
        for head in cases {
            assert_eq!(
                hosts().check_host(&head).unwrap_err().status,
                StatusCode::BAD_REQUEST
            );
        }
    }

    #[test]
    fn an_origin_that_is_not_ours_is_403() {
        let check = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(origin) = origin {
                headers.insert(ORIGIN, origin.parse().unwrap());
            }
            hosts().check_origin(&headers)
        };
        for fine in [
            None,
            Some("https://box.lan:8443"),
            Some("http://localhost:3000"),
            Some("https://inspector.example"),
        ] {
            assert!(check(fine).is_ok(), "{fine:?}");
        }
        for evil in [
            "null",
            "https://evil.example.com",
            "https://box.lan.evil.com",
            "https://evil@box.lan",
            "https://box.lan:x",
            "https://box.lan/",
            "ftp://box.lan",
            "",
        ] {
            assert_eq!(
                check(Some(evil)).unwrap_err().status,
                StatusCode::FORBIDDEN,
                "{evil}"
            );
        }
    }

    #[test]
    fn a_cookie_counts_for_the_page_of_this_very_server_alone() {
        let check = |host: &str, origin: &str, site: &str| {
            let mut head = head("/mcp", &[host]);
            for (name, value) in [("origin", origin), ("sec-fetch-site", site)] {
                if !value.is_empty() {
                    head.headers.insert(name, value.parse().unwrap());
                }
            }
            check_own_page(&head.uri, &head.headers).map_err(|refusal| refusal.status.as_u16())
        };
        for (host, origin, site) in [
            ("box.lan:8443", "", ""),
            ("box.lan:8443", "", "none"),
            ("box.lan:8443", "https://box.lan:8443", "same-origin"),
            ("BOX.lan:8443", "https://box.lan:8443", ""),
            ("box.lan", "https://box.lan", ""),
            ("box.lan:443", "https://box.lan", ""),
        ] {
            assert_eq!(check(host, origin, site), Ok(()), "{host} {origin} {site}");
        }
        for (host, origin, site) in [
            ("box.lan:8443", "https://box.lan:9443", ""),
            ("box.lan:8443", "https://box.lan", ""),
            ("box.lan:8443", "http://box.lan:8443", ""),
            ("box.lan:8443", "null", ""),
            ("box.lan:8443", "https://inspector.example", ""),
            ("box.lan:8443", "", "same-site"),
            ("box.lan:8443", "", "cross-site"),
            ("box.lan:8443", "https://box.lan:8443", "cross-site"),
        ] {
            assert_eq!(
                check(host, origin, site),
                Err(403),
                "{host} {origin} {site}"
            );
        }
    }
}
