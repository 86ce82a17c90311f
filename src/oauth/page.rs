//! Pages for the owner's browser: no script, nothing from elsewhere, in no frame.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use crate::http::Body;

const STYLE: &str = "
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:36rem;margin:2rem auto;padding:0 1rem}
label,fieldset{display:block;margin:1rem 0}
input[type=text],select,button{font:inherit;padding:.4rem .6rem}
button{margin-right:.5rem}
.note{border-left:4px solid;padding-left:.8rem}
dt{font-weight:600}
dd{margin:0 0 .5rem;overflow-wrap:anywhere}
";

/// A page with a title and what stands on it. Its forms lead to us, and from us to those others alone: browsers hold that
/// against where an answer sends them too.
pub fn page(
    status: StatusCode,
    title: &str,
    forms_lead_to: &str,
    content: &Markup,
) -> Response<Body> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – gatewren" }
                style { (PreEscaped(STYLE)) }
            }
            body { h1 { (title) } (content) }
        }
    };
    let mut response = Response::new(Body::whole(page.into_string()));
    *response.status_mut() = status;
    let style = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self' {forms_lead_to}; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    let fixed: [(HeaderName, &str); 6] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, &policy),
        (CACHE_CONTROL, "no-store"),
        // Without it browsers would not say either which page a form stood on.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A page that says why nothing comes of it.
pub fn refusal(words: &str) -> Response<Body> {
    let content = html! {
        p class="note" { (words) "." }
        p { "Nothing was given to anybody. You can close this page." }
    };
    page(
        StatusCode::BAD_REQUEST,
        "This request cannot be answered",
        "",
        &content,
    )
}

/// A page that goes on to one of ours by itself. Another site has sent the browser here, so that it left the owner's
/// cookie out; from a page of ours it sends it.
pub fn go_on(to: &str) -> Response<Body> {
    let content = html! {
        meta http-equiv="refresh" content=(format!("0; url={to}"));
        p { a href=(to) { "Go on" } }
    };
    page(StatusCode::OK, "One moment", "", &content)
}
