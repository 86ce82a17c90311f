//! Determines whether an agent's token is accepted, and why not.

use crate::auth::{AuthError, policy_of, reach_of};
use gatewren_base::config::Spaces;
use gatewren_base::sys::now_ms;
use gatewren_store::vault::Agent;

/// The status of a token.
pub struct TokenStatus {
    /// One word, as in lists.
    pub word: &'static str,
    /// Why it is rejected, if it is.
    pub refused: Option<AuthError>,
}

/// Returns the current status of an agent's token.
pub fn token_status(agent: &Agent, spaces: &Spaces) -> TokenStatus {
    let status_of_error = |word, error| TokenStatus {
        word,
        refused: Some(error),
    };
    if agent.revoked_ms.is_some() {
        return status_of_error("revoked", AuthError::Revoked);
    }
    if agent.expires_ms.is_some_and(|expires| expires <= now_ms()) {
        return status_of_error("expired", AuthError::Expired);
    }
    match policy_of(agent).and_then(|policy| reach_of(agent, &policy, spaces)) {
        Ok(_) => TokenStatus {
            word: "active",
            refused: None,
        },
        Err(error @ AuthError::NoSpace) => status_of_error("no space", error),
        Err(error) => status_of_error("unreadable", error),
    }
}
