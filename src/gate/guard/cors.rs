//! CORS, only for the origins that the owner allows.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use hyper::{Response, StatusCode};

use crate::http::{ResponseBody, empty};

/// The request headers that MCP uses; those that a preflight requests are added.
const REQUEST_HEADERS: &str = "content-type, authorization, accept, mcp-protocol-version, mcp-method, \
                               mcp-name, mcp-session-id, last-event-id";

/// The maximum number of headers that are added; further ones are left out, and the browser refuses the request. A page
/// needs few: parameters of MCP (`mcp-param-*`), and the header of `access.required_header`.
const MAX_ADDED_HEADERS: usize = 32;

/// A preflight's answer may be cached for a day.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("86400");

/// Answers a preflight of an allowed origin, for a path with these methods. [`expose`] adds the origin.
pub fn preflight(headers: &HeaderMap, methods: &'static str) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let answer = response.headers_mut();
    answer.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(methods),
    );
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    let requested = headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|value| value.to_str().ok());
    let allowed = with_requested(requested.unwrap_or_default());
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

/// Adds the requested headers. Their values are judged with the request itself, as from any client.
fn with_requested(requested: &str) -> String {
    let names = requested
        .split(',')
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok());
    let is_listed = |name: &HeaderName| REQUEST_HEADERS.split(", ").any(|known| known == name);
    let added = names
        .filter(|name| !is_listed(name))
        .take(MAX_ADDED_HEADERS);
    std::iter::once(REQUEST_HEADERS.to_owned())
        .chain(added.map(|name| name.to_string()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Whether a page of another origin may send its user's cookie with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCredentials {
    /// It may: the owner has listed the origin, and the path is one for agents.
    Allowed,
    /// It may not.
    Denied,
}

/// Lets a page of the request's origin, which the chain has checked, read the response.
pub fn expose(
    origin: Option<&HeaderValue>,
    credentials: PageCredentials,
    response: &mut Response<ResponseBody>,
) {
    let Some(origin) = origin else { return };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    if credentials == PageCredentials::Allowed {
        headers.insert(
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
    }
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "mcp-session-id, www-authenticate, retry-after, allow, x-request-id",
        ),
    );
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
}
