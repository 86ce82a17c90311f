//! Host and Origin: a page in somebody's browser must not reach the box under a name that is not its own.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use super::refusal::Refusal;

/// The names and addresses that are the box's own, and the origins that its owner allows.
#[derive(Debug, Clone, Default)]
pub struct Hosts {
    /// Lower case, without port.
    pub names: Vec<String>,
    /// The box's addresses.
    pub addresses: Vec<IpAddr>,
    /// Further origins, such as `https://inspector.example`.
    pub origins: Vec<String>,
}

impl Hosts {
    /// Refuses a Host that is not the box's (421), or two of them (400).
    pub fn check_host(&self, head: &Parts) -> Result<(), Refusal> {
        let authority = authority(head)?;
        if self.is_ours(authority.host()) {
            return Ok(());
        }
        let message = format!(
            "this server does not answer to the name {:?}; call it by its own name or address, or have its \
             owner add the name to access.allowed_hosts",
            shortened(authority.host())
        );
        Err(Refusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "unknown_host",
            message,
        ))
    }

    /// Refuses an Origin that is neither ours nor allowed (403). None at all is fine: only browsers send it.
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
            "requests from the origin {:?} are not allowed here; the owner can add it to \
             access.allowed_origins",
            shortened(origin)
        );
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "origin_not_allowed",
            message,
        ))
    }

    /// Whether a browser page of this origin may read our answers.
    pub fn allows_origin(&self, origin: &str) -> bool {
        let listed = self
            .origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(origin));
        let host = origin
            .strip_prefix("https://")
            .or_else(|| origin.strip_prefix("http://"));
        listed
            || host
                .and_then(|rest| rest.parse::<Authority>().ok())
                .is_some_and(|authority| self.is_ours(authority.host()))
    }

    fn is_ours(&self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return self.addresses.contains(&address.to_canonical());
        }
        let name = bare.trim_end_matches('.');
        self.names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The authority of an HTTP/2 request, or the one Host header of an HTTP/1.1 one.
fn authority(head: &Parts) -> Result<Authority, Refusal> {
    let refuse = |message: &str| Refusal::new(StatusCode::BAD_REQUEST, "bad_host", message);
    let mut hosts = head.headers.get_all(HOST).iter();
    let header = hosts.next();
    if hosts.next().is_some() {
        return Err(refuse("a request has one Host header"));
    }
    let from_header = match header {
        Some(value) => {
            let parsed = value
                .to_str()
                .ok()
                .and_then(|text| text.parse::<Authority>().ok());
            Some(
                parsed
                    .ok_or_else(|| refuse("the Host header is not a host with an optional port"))?,
            )
        }
        None => None,
    };
    match (head.uri.authority(), from_header) {
        (Some(target), Some(host)) if *target != host => Err(refuse(
            "the Host header and the request's target name different hosts",
        )),
        (Some(target), _) => Ok(target.clone()),
        (None, Some(host)) => Ok(host),
        (None, None) => Err(refuse("a request has a Host header")),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn hosts() -> Hosts {
        Hosts {
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
}
