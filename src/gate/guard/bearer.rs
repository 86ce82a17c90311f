//! The token in a request's headers, and the refusals for invalid ones.

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap};

use super::refusal::Refusal;
use crate::auth::AuthError;

/// Returns the bearer token of a request.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().and_then(|value| value.to_str().ok());
    let (Some(value), None) = (value, values.next()) else {
        return Err(unauthorized(
            "send the agent's token in one header: Authorization: Bearer gw_...",
        ));
    };
    match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(unauthorized(
            "the Authorization header must have the form: Bearer gw_...",
        )),
    }
}

/// Converts an authentication error into a refusal.
pub fn to_refusal(error: AuthError) -> Refusal {
    match error {
        AuthError::Unavailable => Refusal::later(
            StatusCode::SERVICE_UNAVAILABLE,
            "unavailable",
            &error.to_string(),
            1,
        ),
        AuthError::NoSpace => {
            Refusal::new(StatusCode::FORBIDDEN, "no_space_scope", error.to_string())
        }
        AuthError::Elsewhere => Refusal::new(
            StatusCode::FORBIDDEN,
            "address_not_allowed",
            error.to_string(),
        ),
        AuthError::Unreadable => Refusal::new(
            StatusCode::FORBIDDEN,
            "policy_unreadable",
            error.to_string(),
        ),
        _ => unauthorized(error.to_string()),
    }
}

/// A refusal with 401.
pub fn unauthorized(message: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "agent_required", message)
}
