//! Static assets of the pages: compiled in, and cached by browsers until the version changes.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::{Response, StatusCode};

use super::frame::add_guards;
use gatewren_gate::guard::OwnerRequest;
use gatewren_gate::http::{ResponseBody, empty};

/// An asset: path, media type and content.
type Asset = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const ASSETS: [Asset; 4] = [
    ("/owner/style.css", "text/css; charset=utf-8",        include_str!("assets/style.css")),
    ("/owner/page.js",   "text/javascript; charset=utf-8", include_str!("assets/page.js")),
    ("/owner/icon.svg",  "image/svg+xml",                  include_str!("assets/icon.svg")),
    ("/owner/icons.svg", "image/svg+xml",                  include_str!("assets/icons.svg")),
];

/// Changes with every release, and so invalidates every cached asset.
const VERSION: &str = concat!("\"", env!("CARGO_PKG_VERSION"), "\"");

/// The caching policy; the assets of a debug build may change with every build.
const KEPT: &str = if cfg!(debug_assertions) {
    "no-cache"
} else {
    "public, max-age=3600"
};

/// Returns the asset at this path; no sign-in is needed.
pub fn asset(visit: &OwnerRequest) -> Option<Response<ResponseBody>> {
    let (_, media, text) = ASSETS.iter().find(|(path, ..)| *path == visit.path())?;
    let known = visit.header(IF_NONE_MATCH.as_str()) == Some(VERSION) && !cfg!(debug_assertions);
    let mut response = if known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        Response::new(ResponseBody::whole(text.as_bytes().to_vec()))
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEPT));
    headers.insert(ETAG, HeaderValue::from_static(VERSION));
    add_guards(&mut response);
    Some(response)
}
