//! What pages are drawn with: compiled in, and kept by browsers for as long as it is this gatewren.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::{Response, StatusCode};

use super::frame::guarded;
use crate::guard::Visit;
use crate::http::{Body, empty};

/// An asset: its path, its type and what it is.
type Asset = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const ASSETS: [Asset; 3] = [
    ("/owner/style.css", "text/css; charset=utf-8",        include_str!("assets/style.css")),
    ("/owner/page.js",   "text/javascript; charset=utf-8", include_str!("assets/page.js")),
    ("/owner/icon.svg",  "image/svg+xml",                  include_str!("assets/icon.svg")),
];

/// Changes with every release, and so with every asset that somebody may have.
const VERSION: &str = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");

/// Whether a browser asks again: a debug build's assets may be others each time.
const KEPT: &str = if cfg!(debug_assertions) {
    "no-cache"
} else {
    "public, max-age=3600"
};

/// The asset at this path, which anybody may see.
pub fn asset(visit: &Visit) -> Option<Response<Body>> {
    let (_, media, text) = ASSETS.iter().find(|(path, ..)| *path == visit.path())?;
    let known = visit.header(IF_NONE_MATCH.as_str()) == Some(VERSION) && !cfg!(debug_assertions);
    let mut response = if known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        Response::new(Body::whole(text.as_bytes().to_vec()))
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEPT));
    headers.insert(ETAG, HeaderValue::from_static(VERSION));
    guarded(&mut response);
    Some(response)
}
