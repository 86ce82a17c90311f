//! Why a page could not be rendered, with the message for the reader.

use hyper::StatusCode;

use super::texts;
use gatewren_store::state::StateError;
use gatewren_store::vault::VaultError;

/// Why another page is shown than the requested one.
#[derive(Debug)]
pub enum PageError {
    /// The visitor is not signed in.
    SignedOut,
    /// No such page, agent, change or call exists.
    Absent,
    /// The request is invalid; the text states why.
    Refused(String),
    /// The data is not available at the moment; the log states why.
    Unavailable,
}

impl PageError {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::SignedOut => StatusCode::UNAUTHORIZED,
            Self::Absent => StatusCode::NOT_FOUND,
            Self::Refused(_) => StatusCode::BAD_REQUEST,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The message on the page.
    pub fn words(&self) -> &str {
        match self {
            Self::SignedOut => texts::SIGNED_OUT,
            Self::Absent => texts::ABSENT,
            Self::Refused(words) => words,
            Self::Unavailable => texts::UNAVAILABLE,
        }
    }
}

impl From<VaultError> for PageError {
    fn from(cause: VaultError) -> Self {
        tracing::error!("rendering the owner's page failed: {cause}");
        Self::Unavailable
    }
}

impl From<StateError> for PageError {
    fn from(cause: StateError) -> Self {
        tracing::error!("rendering the owner's page failed: {cause}");
        Self::Unavailable
    }
}

/// Error messages of the owner's actions.
impl From<String> for PageError {
    fn from(words: String) -> Self {
        Self::Refused(words)
    }
}
