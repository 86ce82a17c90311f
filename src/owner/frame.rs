//! The frame of every page: head, header, content, and the security headers.

use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use maud::{DOCTYPE, Markup, html};

use super::asset_address::{SCRIPT, STYLE};
use super::header::PageHeader;
use super::texts;
use super::theme::Theme;
use gatewren_base::sys::now_ms;
use gatewren_gate::http::{ResponseBody, empty};

/// All content is loaded from this server, nothing is inline, and no other page may embed this one in a frame.
const CONTENT: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                       connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page before it is rendered.
pub struct OwnerPage<'a> {
    /// The window title.
    pub title: &'a str,
    /// The header; `None` before the owner is signed in.
    pub header: Option<PageHeader<'a>>,
    /// The theme.
    pub theme: Theme,
    /// The stamp of the shown data, if the page is updated on changes.
    pub stamp: Option<&'a str>,
    /// Whether an update replaces the content, and not only the header.
    pub is_live: bool,
    /// The content.
    pub content: Markup,
}

impl OwnerPage<'_> {
    /// Returns the page as a response.
    pub fn response(self, status: StatusCode) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::whole(
            self.markup().into_string().into_bytes(),
        ));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        headers.insert(CONTENT_TYPE, html);
        // The page contains data for the owner only.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        add_guards(&mut response);
        response
    }

    fn markup(self) -> Markup {
        let header = self.header.as_ref();
        let waiting = header.map_or(0, |header| header.waiting);
        let name = header.map_or("gatewren", |header| &header.server);
        html! {
            (DOCTYPE)
            html lang="en" data-theme=[self.theme.attribute()] {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover";
                    title { @if waiting > 0 { "(" (waiting) ") " } (self.title) " · " (name) }
                    link rel="stylesheet" href=(STYLE);
                    link rel="icon" href="/owner/icon.svg" type="image/svg+xml";
                    link rel="apple-touch-icon" href="/owner/icon.png";
                    link rel="manifest" href="/owner/manifest.webmanifest";
                    script src=(SCRIPT) defer {}
                }
                body {
                    a class="skip" href="#main" { (texts::SKIP) }
                    @if let Some(header) = header { (header.markup()) (news()) }
                    @let path = header.filter(|_| !self.is_live).map(|header| header.tab.header_path());
                    main id="main" tabindex="-1" data-stamp=[self.stamp] data-header=[path] data-now=(now_ms()) { (self.content) }
                }
            }
        }
    }
}

/// Renders the bar that the script fills: the news while a form is in use, and why the page may be out of date.
fn news() -> Markup {
    html! {
        div id="news" role="status" data-one=(texts::NEW_REQUEST) data-many=(texts::NEW_REQUESTS) data-changed=(texts::PAGE_CHANGED)
            data-lost=(texts::PAGE_LOST) data-stale=(texts::PAGE_STALE) {
            p hidden { span {} " " button type="button" class="plain" { (texts::SHOW) } }
        }
    }
}

/// Adds the headers of every response.
pub fn add_guards(response: &mut Response<ResponseBody>) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // With `no-referrer`, browsers would omit the origin in form requests as well.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
}

/// Redirects to the page that shows the result of a form.
pub fn redirect(path: &str) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::SEE_OTHER);
    let to = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/owner"));
    response.headers_mut().insert(LOCATION, to);
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_guards(&mut response);
    response
}
