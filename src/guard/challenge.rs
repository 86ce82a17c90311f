//! What a 401 asks for: an agent's token, and at the door for programs the way to one over OAuth.

use hyper::header::AUTHORIZATION;
use hyper::http::request::Parts;

use super::door::Door;
use super::host::own_origin;
use super::refusal::Refusal;

/// A refusal at a door as it is sent: where programs come in over OAuth, the one for want of a token says where there is
/// one (RFC 9728, 5.1). At every other door nothing speaks of that, for clients with a token of their own would drop it.
pub fn challenged(door: Door, head: &Parts, refusal: Refusal) -> Refusal {
    if door != Door::Connect || refusal.error != "agent_required" {
        return refusal;
    }
    let Ok(origin) = own_origin(head) else {
        return refusal;
    };
    let metadata = format!(
        "{origin}/.well-known/oauth-protected-resource{}",
        head.uri.path()
    );
    // Who brought none is told of no fault (RFC 6750, 3.1).
    let fault = if head.headers.contains_key(AUTHORIZATION) {
        ", error=\"invalid_token\""
    } else {
        ""
    };
    refusal.with_challenge(format!(
        "Bearer realm=\"gatewren\", resource_metadata=\"{metadata}\", scope=\"mcp\"{fault}"
    ))
}
