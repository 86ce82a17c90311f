//! Why the access of an authenticated caller has ended, in words for the caller.

use std::fmt;
use std::sync::Arc;

use super::error::AuthError;
use super::principal::Principal;
use gatewren_base::sys::rfc3339;

/// Why the access of an authenticated caller has ended. It names the caller's own agent and token only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessEnd {
    /// The agent is rejected.
    Agent {
        /// The reason. [`AuthError::Unknown`]: the owner has given the agent another token.
        why: AuthError,
        /// The agent's name.
        name: Arc<str>,
        /// The id of its token, as the audit and `gatewren agent show` have it.
        token: Option<Arc<str>>,
        /// When the token was revoked or expired, in milliseconds since 1970.
        at_ms: Option<u64>,
    },
    /// The session of the cookie has ended.
    SignedOut,
    /// The OAuth access of the program has ended.
    Unlinked,
    /// The settings no longer accept the owner's cookie for MCP.
    OwnerRefused,
}

impl AccessEnd {
    /// Returns the end of an agent's access.
    pub(super) fn of(who: &Principal, why: AuthError, at_ms: Option<u64>) -> Self {
        Self::Agent {
            why,
            name: who.name().clone(),
            token: who.token_id().cloned(),
            at_ms,
        }
    }
}

impl fmt::Display for AccessEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (why, name, token, at_ms) = match self {
            Self::Agent {
                why,
                name,
                token,
                at_ms,
            } => (*why, name, token, *at_ms),
            Self::SignedOut => {
                return f.write_str(
                    "the session was ended or has expired; sign in again with POST /login",
                );
            }
            Self::Unlinked => {
                return f.write_str(
                    "the owner of the server ended this program's access; connect it again to ask the owner for it",
                );
            }
            Self::OwnerRefused => {
                return f.write_str(
                    "the owner's session is no longer accepted here; send an agent's token, or set \
                     access.owner_on_mcp",
                );
            }
        };
        let token = token.as_ref().map(|id| format!("token {id}"));
        let token = token.as_deref().unwrap_or("the token");
        let at = at_ms.map(|ms| format!(" at {}", rfc3339(ms)));
        let at = at.unwrap_or_default();
        let done = match why {
            AuthError::Revoked => {
                format!("the owner of the server revoked {token} of agent {name}{at}")
            }
            AuthError::Unknown => {
                return write!(
                    f,
                    "the owner of the server replaced {token} of agent {name}; set up the client with the new token"
                );
            }
            AuthError::Expired => format!("{token} of agent {name} expired{at}"),
            other => return write!(f, "agent {name} is refused: {other}"),
        };
        write!(f, "{done}; ask the owner for a new token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_names_the_token_the_time_and_what_to_do() {
        let end = |why| AccessEnd::Agent {
            why,
            name: "claude".into(),
            token: Some("1a2b3c4d".into()),
            at_ms: Some(1_700_000_000_000),
        };
        assert_eq!(
            end(AuthError::Revoked).to_string(),
            "the owner of the server revoked token 1a2b3c4d of agent claude at 2023-11-14T22:13:20.000Z; ask the \
             owner for a new token"
        );
        assert_eq!(
            end(AuthError::Expired).to_string(),
            "token 1a2b3c4d of agent claude expired at 2023-11-14T22:13:20.000Z; ask the owner for a new token"
        );
        assert_eq!(
            end(AuthError::Unknown).to_string(),
            "the owner of the server replaced token 1a2b3c4d of agent claude; set up the client with the new token"
        );
        assert!(
            end(AuthError::Elsewhere)
                .to_string()
                .contains("not allowed from this address")
        );
    }
}
