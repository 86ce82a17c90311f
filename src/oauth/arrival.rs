//! Whoever comes to the consent page and is not the owner yet: where its browser goes from there.

use form_urlencoded::byte_serialize;
use hyper::Response;

use super::authorize::see_other;
use super::page::{go_on, refusal};
use super::words;
use crate::http::Body;

/// The longest query; a longer one is refused, for it goes through the sign-in page and back.
pub const MAX_QUERY: usize = 8 * 1024;

/// Where the owner signs in.
const SIGN_IN: &str = "/owner/sign-in";

/// Marks a request that has been through a page of ours already.
const MARK: &str = "from_here=1";

/// Another site has sent a browser here: it goes on from a page of ours, once, so that the owner's cookie comes along.
pub fn step_inside(path: &str, query: &str) -> Response<Body> {
    if query.len() > MAX_QUERY || query.split('&').any(|one| one == MARK) {
        return sign_in(path, query);
    }
    go_on(&format!("{path}?{query}&{MARK}"))
}

/// Nobody is signed in: sends the browser to where the owner signs in, and from there back. Nothing is looked at
/// before; a stranger learns of no client and has us fetch no document.
pub fn sign_in(path: &str, query: &str) -> Response<Body> {
    if query.len() > MAX_QUERY {
        return refusal(words::TOO_LONG);
    }
    let here = format!("{path}?{query}");
    let then: String = byte_serialize(here.as_bytes()).collect();
    see_other(&format!("{SIGN_IN}?then={then}"))
}
