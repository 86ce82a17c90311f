//! Host and Origin: a request is accepted only if it names one of the host's names or addresses, and nothing
//! else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use hyper::Request;
use hyper::header::{HOST, HeaderMap, ORIGIN};
use hyper::http::request::Parts;

use super::input::{headers, parts, text};
use gatewren_gate::guard::AllowedHosts;

const NAMES: [&str; 2] = ["localhost", "box.lan"];
const LISTED: &str = "https://inspector.example";

static OURS: LazyLock<AllowedHosts> = LazyLock::new(|| AllowedHosts {
    names: NAMES.map(str::to_owned).into(),
    addresses: vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
    origins: vec![LISTED.to_owned()],
});

/// First part: the target of a request; second part: header lines.
pub fn let_in_our_names_alone(data: &[u8]) {
    let [target, lines] = parts(data);
    let Some(target) = text(target) else { return };
    let mut request = Request::builder().uri(target);
    if let Some(all) = request.headers_mut() {
        *all = headers(lines);
    }
    let Ok(request) = request.body(()) else {
        return;
    };
    let (head, ()) = request.into_parts();
    host(&head);
    origin(&head.headers);
}

fn host(head: &Parts) {
    let outcome = OURS.check_host(head);
    let given: Vec<&[u8]> = all(&head.headers, HOST.as_str());
    let target = head.uri.authority().map(|a| a.as_str().as_bytes());
    let wanted = match (target, given.as_slice()) {
        (None, [one]) => is_ours(one),
        (Some(target), []) => is_ours(target),
        (Some(target), [one]) => target.eq_ignore_ascii_case(one) && is_ours(target),
        _ => false,
    };
    let status = outcome
        .as_ref()
        .err()
        .map(|refusal| refusal.status.as_u16());
    assert_eq!(outcome.is_ok(), wanted, "{:?} {given:?}", head.uri);
    assert!(matches!(status, None | Some(400 | 421)), "{status:?}");
}

fn origin(headers: &HeaderMap) {
    let given = all(headers, ORIGIN.as_str());
    let wanted = match given.as_slice() {
        [] => true,
        [one] => {
            let page = one
                .strip_prefix(b"https://")
                .or_else(|| one.strip_prefix(b"http://"));
            one.eq_ignore_ascii_case(LISTED.as_bytes()) || page.is_some_and(is_ours)
        }
        _ => false,
    };
    let outcome = OURS.check_origin(headers);
    let status = outcome.err().map(|refusal| refusal.status.as_u16());
    assert_eq!(status, (!wanted).then_some(403), "{given:?}");
}

fn all<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h [u8]> {
    let values = headers.get_all(name).iter();
    values.map(hyper::header::HeaderValue::as_bytes).collect()
}

/// Whether a host with an optional port (RFC 3986 section 3.2.2) is one of ours.
fn is_ours(authority: &[u8]) -> bool {
    let Some(authority) = text(authority) else {
        return false;
    };
    let end = match authority.find(']') {
        Some(end) => end + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let inside = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let address: Option<IpAddr> = match inside {
        Some(inside) => inside.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::from),
    };
    let address = address.map(|address| address.to_canonical());
    let name = host.strip_suffix('.').unwrap_or(host);
    let known = address.is_some_and(|address| OURS.addresses.contains(&address))
        || NAMES.iter().any(|ours| ours.eq_ignore_ascii_case(name));
    known && is_port(port)
}

fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':').unwrap_or_default();
    // RFC 3986 allows a port without digits.
    text.is_empty() || text == ":" || (!digits.starts_with('+') && digits.parse::<u16>().is_ok())
}
