//! The challenge of a 401: an agent's token, or for OAuth programs the location of the metadata.

use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

use super::host::own_origin;
use super::refusal::Refusal;
use super::required_credentials::RequiredCredentials;

/// Completes a refusal. On paths for OAuth programs, a 401 for a missing token names the metadata that leads to one
/// (RFC 9728, 5.1). Other paths do not name it, because clients would then drop their configured token.
pub fn challenged(required: RequiredCredentials, head: &Parts, refusal: Refusal) -> Refusal {
    if required != RequiredCredentials::Connect || refusal.error != "agent_required" {
        return refusal;
    }
    let Ok(origin) = own_origin(head) else {
        return refusal;
    };
    let metadata = format!(
        "{origin}/.well-known/oauth-protected-resource{}",
        head.uri.path()
    );
    // A request without a token gets no error code (RFC 6750, 3.1).
    let fault = if head.headers.contains_key(AUTHORIZATION) {
        ", error=\"invalid_token\""
    } else {
        ""
    };
    refusal.with_challenge(format!(
        "Bearer realm=\"gatewren\", resource_metadata=\"{metadata}\", scope=\"mcp\"{fault}"
    ))
}
