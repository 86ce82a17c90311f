//! CORS, only for the origins that the owner allows.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderMap, HeaderValue, ORIGIN, VARY,
};
use hyper::{Response, StatusCode};

use crate::http::{ResponseBody, empty};

/// The request headers that MCP uses; `mcp-param-*` are added if they are requested.
const REQUEST_HEADERS: &str = "content-type, authorization, accept, mcp-protocol-version, mcp-method, \
                               mcp-name, mcp-session-id, last-event-id";

/// A preflight's answer may be cached for a day.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("86400");

/// Answers a preflight of an allowed origin, for a path with these methods.
///
/// `Access-Control-Allow-Credentials` is never sent: a page of another origin cannot use its user's cookie.
pub fn preflight(headers: &HeaderMap, methods: &'static str) -> Response<ResponseBody> {
    let mut response = empty(StatusCode::NO_CONTENT);
    let answer = response.headers_mut();
    answer.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(methods),
    );
    answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    let asked = headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .and_then(|value| value.to_str().ok());
    let allowed = with_parameters(asked.unwrap_or_default());
    if let Ok(allowed) = HeaderValue::from_str(&allowed) {
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    response
}

fn with_parameters(asked: &str) -> String {
    let names = asked
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase());
    let parameters = names.filter(|name| name.starts_with("mcp-param-"));
    std::iter::once(REQUEST_HEADERS.to_owned())
        .chain(parameters)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lets a page of the request's origin, which the chain has checked, read the response.
pub fn expose(origin: Option<&HeaderValue>, response: &mut Response<ResponseBody>) {
    let Some(origin) = origin else { return };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, www-authenticate, retry-after, allow"),
    );
    headers.append(VARY, HeaderValue::from_name(ORIGIN));
}
