//! Why authentication fails.

use std::fmt;

/// Why a token is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthError {
    /// It is not a token.
    Malformed,
    /// No agent has it.
    Unknown,
    /// It has expired.
    Expired,
    /// The owner has revoked it.
    Revoked,
    /// Its agent has no space, or a space that is not configured.
    NoSpace,
    /// Its agent's policy cannot be read.
    Unreadable,
    /// Its agent may only connect from certain addresses, and this is none of them.
    Elsewhere,
    /// The vault cannot be read at the moment. The log has the reason.
    Unavailable,
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "this is not a complete gatewren token; copy all 52 characters, beginning with gw_"
            }
            Self::Unknown => "unknown token; ask the owner of the server for a new one",
            Self::Expired => "this token has expired; ask the owner of the server for a new one",
            Self::Revoked => "this token was revoked by the owner of the server; ask the owner for a new one",
            Self::NoSpace => {
                "this agent has no space, or its space is not in the settings; the owner sets it with gatewren agent edit"
            }
            Self::Unreadable => {
                "this agent's policy cannot be read; the owner sets it again with gatewren agent edit"
            }
            Self::Elsewhere => {
                "this agent is not allowed from this address; the owner sets its networks with gatewren agent \
                 edit"
            }
            Self::Unavailable => "tokens cannot be checked at the moment; try again soon",
        })
    }
}

impl std::error::Error for AuthError {}
