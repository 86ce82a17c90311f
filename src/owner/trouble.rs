//! What kept a page from being made, as a page says it.

use hyper::StatusCode;

use super::words;
use crate::state::StateError;
use crate::vault::VaultError;

/// Why there is another page than the one that was asked for.
#[derive(Debug)]
pub enum Trouble {
    /// Nobody is signed in.
    SignedOut,
    /// There is no such page, agent, change or call.
    Absent,
    /// What was sent cannot be done; the words say why.
    Refused(String),
    /// It cannot be known at the moment; the log says why.
    Unavailable,
}

impl Trouble {
    /// The status that goes with it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::Absent => StatusCode::NOT_FOUND,
            Self::Refused(_) => StatusCode::BAD_REQUEST,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// What the page says.
    pub fn words(&self) -> &str {
        match self {
            Self::SignedOut => words::SIGNED_OUT,
            Self::Absent => words::ABSENT,
            Self::Refused(words) => words,
            Self::Unavailable => words::UNAVAILABLE,
        }
    }
}

impl From<VaultError> for Trouble {
    fn from(cause: VaultError) -> Self {
        tracing::error!("the owner's page could not be made: {cause}");
        Self::Unavailable
    }
}

impl From<StateError> for Trouble {
    fn from(cause: StateError) -> Self {
        tracing::error!("the owner's page could not be made: {cause}");
        Self::Unavailable
    }
}

/// What the owner's deeds say when they could not be done.
impl From<String> for Trouble {
    fn from(words: String) -> Self {
        Self::Refused(words)
    }
}
