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
                "this is not a whole gatewren token; copy it again, all 52 characters from gw_ on"
            }
            Self::Unknown => "no agent has this token; ask the owner of the box for a new one",
            Self::Expired => "this token has expired; ask the owner of the box for a new one",
            Self::Revoked => "this token was revoked by the owner of the box",
            Self::NoSpace => {
                "this agent is kept in no space of this box; its owner gives it one with gatewren agent edit"
            }
            Self::Unreadable => {
                "this agent's policy cannot be read; its owner writes it again with gatewren agent edit"
            }
            Self::Elsewhere => {
                "this agent may not come from this address; its owner says from where with gatewren agent edit"
            }
            Self::Unavailable => "tokens cannot be checked at the moment; try again soon",
        })
    }
}

impl std::error::Error for AuthError {}
