//! Pages for the owner's browser: without scripts, external resources or framing.

use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};
use maud::{DOCTYPE, Markup, html};

use super::texts;
use crate::http::ResponseBody;

/// Builds a page with a title and a content. Its forms may lead only to this server and to `forms_lead_to`:
/// browsers apply this rule to redirects of the answer, too. `theme` is that of the owner's page, for the style sheet.
pub fn page(
    status: StatusCode,
    title: &str,
    forms_lead_to: &str,
    theme: Option<&str>,
    content: &Markup,
) -> Response<ResponseBody> {
    let page = html! {
        (DOCTYPE)
        html lang="en" data-theme=[theme] {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – gatewren" }
                link rel="stylesheet" href="/owner/style.css";
                link rel="icon" href="/owner/icon.svg" type="image/svg+xml";
            }
            body { main id="main" { h1 { (title) } (content) } }
        }
    };
    let mut response = Response::new(ResponseBody::whole(page.into_string()));
    *response.status_mut() = status;
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self' {forms_lead_to}; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    let fixed: [(HeaderName, &str); 6] = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, &policy),
        (CACHE_CONTROL, "no-store"),
        // Without this header, browsers would not send the Origin of a form's page.
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

/// A page that states why the request was refused.
pub fn refusal(words: &str) -> Response<ResponseBody> {
    let content = html! {
        p class="card notice bad" { (words) "." }
        p { (texts::NOTHING_GIVEN) }
    };
    page(StatusCode::BAD_REQUEST, texts::CANNOT, "", None, &content)
}

/// A page that continues to one of ours by itself. If another site has sent the browser here, it has not sent the
/// owner's cookie; from our own page it does.
pub fn redirect_page(to: &str) -> Response<ResponseBody> {
    let content = html! {
        meta http-equiv="refresh" content=(format!("0; url={to}"));
        p { a href=(to) { (texts::GO_ON) } }
    };
    page(StatusCode::OK, texts::ONE_MOMENT, "", None, &content)
}
