//! Static assets of the pages: compiled in, and cached by browsers until the version changes.

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::{Response, StatusCode};

use super::frame::add_guards;
use gatewren_gate::guard::OwnerRequest;
use gatewren_gate::http::{ResponseBody, empty};

/// An asset: path, media type and content.
type Asset = (&'static str, &'static str, &'static [u8]);

#[rustfmt::skip]
const ASSETS: [Asset; 8] = [
    ("/owner/style.css", "text/css; charset=utf-8",        include_bytes!("assets/style.css")),
    ("/owner/page.js",   "text/javascript; charset=utf-8", include_bytes!("assets/page.js")),
    ("/owner/icon.svg",  "image/svg+xml",                  include_bytes!("assets/icon.svg")),
    ("/owner/icons.svg", "image/svg+xml",                  include_bytes!("assets/icons.svg")),
    ("/owner/icon.png",  "image/png",                      include_bytes!("assets/icon.png")),
    ("/owner/worker.js", "text/javascript; charset=utf-8", include_bytes!("assets/worker.js")),
    ("/owner/offline",   "text/html; charset=utf-8",       include_bytes!("assets/offline.html")),
    ("/owner/manifest.webmanifest", "application/manifest+json", include_bytes!("assets/manifest.json")),
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
    let (_, media, bytes) = ASSETS.iter().find(|(path, ..)| *path == visit.path())?;
    let known = visit.header(IF_NONE_MATCH.as_str()) == Some(VERSION) && !cfg!(debug_assertions);
    let mut response = if known {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        Response::new(ResponseBody::whole(bytes.to_vec()))
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(KEPT));
    headers.insert(ETAG, HeaderValue::from_static(VERSION));
    // The worker also serves `/owner` itself, which is not below its own path.
    headers.insert("service-worker-allowed", HeaderValue::from_static("/owner"));
    add_guards(&mut response);
    Some(response)
}
