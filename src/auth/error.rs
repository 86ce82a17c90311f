//! Why somebody is not let in.

use std::fmt;

/// Why nobody comes in with this token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthError {
    /// It is no token.
    Malformed,
    /// No agent has it.
    Unknown,
    /// Its time is over.
    Expired,
    /// Its owner ended it.
    Revoked,
    /// Its agent is kept in no space, or in one that is not there.
    NoSpace,
    /// Its agent's policy cannot be read.
    Unreadable,
    /// Its agent may come from certain addresses only, and this is none of them.
    Elsewhere,
    /// The vault cannot be asked at the moment; the log says why.
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
