//! Redirects visitors of the consent page who are not signed in as the owner.

use form_urlencoded::byte_serialize;
use hyper::Response;

use super::authorize::see_other;
use super::page::{redirect_page, refusal};
use super::texts;
use crate::http::ResponseBody;

/// The maximum length of a query; a longer one is refused, because it is passed through the sign-in page and back.
pub const MAX_QUERY: usize = 8 * 1024;

/// The path of the owner's sign-in page.
const SIGN_IN: &str = "/owner/sign-in";

/// Marks a request that has already been redirected by one of our own pages.
const MARK: &str = "from_here=1";

/// Handles a browser that another site has sent: redirects it once from a page of our own, so that it sends the
/// owner's cookie.
pub fn step_inside(path: &str, query: &str) -> Response<ResponseBody> {
    if query.len() > MAX_QUERY || query.split('&').any(|one| one == MARK) {
        return sign_in(path, query);
    }
    redirect_page(&format!("{path}?{query}&{MARK}"))
}

/// Redirects a visitor without a session to the owner's sign-in, and from there back. Nothing is looked up before:
/// a stranger learns of no client, and cannot make the server fetch a document.
pub fn sign_in(path: &str, query: &str) -> Response<ResponseBody> {
    if query.len() > MAX_QUERY {
        return refusal(texts::TOO_LONG);
    }
    let here = format!("{path}?{query}");
    let then: String = byte_serialize(here.as_bytes()).collect();
    see_other(&format!("{SIGN_IN}?then={then}"))
}
