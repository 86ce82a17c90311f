//! Redirect URIs: an answer is sent only to a URI that the program declared before, over https or to the same
//! computer.

use form_urlencoded::byte_serialize;
use hyper::Uri;

/// The maximum length of a URI; longer ones are refused.
const MAX_CHARS: usize = 2048;

/// The kind of destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// A server that is authenticated by its certificate.
    Web,
    /// The computer of the browser, where any program may wait for the answer.
    SameComputer,
}

/// The kind of destination of a URI; `None` if no answer may be sent there.
pub fn place(uri: &str) -> Option<RedirectKind> {
    let sound = |b: u8| b.is_ascii_graphic() && !b"#\\\"<>^`{|}".contains(&b);
    if uri.len() > MAX_CHARS || !uri.bytes().all(sound) {
        return None;
    }
    let parsed: Uri = uri.parse().ok()?;
    let authority = parsed.authority()?.as_str();
    let host = parsed.host()?;
    // No user, and no character with a special meaning in a header.
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
    if host.is_empty() || !authority.bytes().all(plain) {
        return None;
    }
    match parsed.scheme_str()? {
        "https" => Some(RedirectKind::Web),
        "http" if matches!(host, "127.0.0.1" | "[::1]" | "localhost") => {
            Some(RedirectKind::SameComputer)
        }
        _ => None,
    }
}

/// Whether a requested URI matches a declared one. It must be equal, but on the same computer the port may differ,
/// because the program uses any free one (RFC 8252, 7.3).
pub fn fits(known: &str, asked: &str) -> bool {
    if known == asked {
        return true;
    }
    let local = |uri| place(uri) == Some(RedirectKind::SameComputer);
    local(known) && local(asked) && without_port(known) == without_port(asked)
}

/// Splits a URI on the same computer into its host and everything after its port.
fn without_port(uri: &str) -> Option<(&str, &str)> {
    let (authority, rest) = authority(uri)?;
    let end = match authority.find(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    authority.get(..end).map(|host| (host, rest))
}

/// Splits a URI into its authority and everything after it.
fn authority(uri: &str) -> Option<(&str, &str)> {
    let (_, rest) = uri.split_once("://")?;
    rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len()))
}

/// The host of a URI with its port, for display.
pub fn host(uri: &str) -> &str {
    authority(uri).map_or("", |(authority, _)| authority)
}

/// The origin of a URI as a source in a content security policy, which has no syntax for an IPv6 address.
pub fn policy_source(uri: &str) -> String {
    match uri.split_once("://") {
        Some((scheme, _)) if host(uri).starts_with('[') => format!("{scheme}:"),
        Some((scheme, _)) => format!("{scheme}://{}", host(uri)),
        None => String::new(),
    }
}

/// Appends parameters to a URI.
pub fn with(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut out = uri.to_owned();
    for (name, value) in parameters {
        let joint = match (out.contains('?'), out.ends_with(['?', '&'])) {
            (_, true) => "",
            (true, false) => "&",
            (false, false) => "?",
        };
        out.push_str(joint);
        out.push_str(name);
        out.push('=');
        out.extend(byte_serialize(value.as_bytes()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_and_the_same_computer() {
        for (uri, expected) in [
            ("https://chat.example/back", Some(RedirectKind::Web)),
            ("https://chat.example:444/back?a=b", Some(RedirectKind::Web)),
            (
                "http://127.0.0.1:3000/callback",
                Some(RedirectKind::SameComputer),
            ),
            ("http://[::1]/callback", Some(RedirectKind::SameComputer)),
            ("http://localhost/", Some(RedirectKind::SameComputer)),
            ("http://chat.example/back", None),
            ("http://127.0.0.1.example/", None),
            ("http://127.0.0.2/", None),
            ("http://localhost@chat.example/", None),
            ("https://me@chat.example/", None),
            ("https://chat.example;x/", None),
            ("https:///back", None),
            ("https://chat.example/back#x", None),
            ("https://chat.example/ back", None),
            ("https://chat.example\\@x/", None),
            ("javascript:alert(1)", None),
            ("data:text/html,x", None),
            ("cursor://back", None),
            ("/back", None),
            ("", None),
        ] {
            assert_eq!(place(uri), expected, "{uri}");
        }
        let long = format!("https://chat.example/{}", "x".repeat(MAX_CHARS));
        assert_eq!(place(&long), None);
    }

    #[test]
    fn only_a_port_of_the_same_computer_may_differ() {
        for (known, asked, expected) in [
            ("https://a.example/b", "https://a.example/b", true),
            ("http://127.0.0.1/b", "http://127.0.0.1:5/b", true),
            ("http://127.0.0.1:4/b?x", "http://127.0.0.1:5/b?x", true),
            ("http://[::1]/b", "http://[::1]:5/b", true),
            ("http://localhost:1", "http://localhost:2", true),
            ("https://a.example/b", "https://a.example:444/b", false),
            ("https://a.example/b", "https://a.example/b/", false),
            ("https://a.example/b", "https://a.example/b?x", false),
            ("http://127.0.0.1/b", "http://localhost/b", false),
            ("http://127.0.0.1/b", "http://127.0.0.1:5/c", false),
            ("http://127.0.0.1/b", "https://127.0.0.1:5/b", false),
            (
                "http://127.0.0.1/b",
                "http://127.0.0.1:5@a.example/b",
                false,
            ),
        ] {
            assert_eq!(fits(known, asked), expected, "{known} {asked}");
        }
    }

    #[test]
    fn parameters_come_behind_those_that_are_there() {
        let more = [("code", "gw_x"), ("iss", "https://b/c")];
        let tail = "code=gw_x&iss=https%3A%2F%2Fb%2Fc";
        for (uri, joint) in [
            ("https://a/b", "?"),
            ("https://a/b?c=d", "&"),
            ("https://a/b?", ""),
        ] {
            assert_eq!(with(uri, &more), format!("{uri}{joint}{tail}"));
        }
        assert_eq!(host("http://[::1]:5/b"), "[::1]:5");
        assert_eq!(policy_source("http://[::1]:5/b"), "http:");
        assert_eq!(policy_source("https://a.example?x"), "https://a.example");
    }
}
