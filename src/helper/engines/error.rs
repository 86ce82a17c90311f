//! Why a request to a container engine failed, in sentences for a person.

use std::fmt;

use gatewren_base::sys::{sanitize, shorten};

/// The most characters of an engine's own message that are shown; a longer one is cut.
const MAX_MESSAGE_CHARS: usize = 400;

/// Why a request failed. Each holds one sentence; text of the engine in it is sanitized and shortened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineError {
    /// The socket is missing, the engine does not answer in time, or it closed the connection. A later try may work.
    Unavailable(String),
    /// A user other than root controls the socket, or it belongs to the other engine. Nothing was requested.
    Untrusted(String),
    /// The engine is too old for this client, or refuses each version of the API that this client has.
    TooOld(String),
    /// An argument is not one that the engine could accept. Nothing was sent.
    Invalid(String),
    /// The engine has no such container or image.
    NotFound(String),
    /// The container is in a state in which the engine does not do this.
    Conflict(String),
    /// The engine refused for another reason.
    Refused(String),
    /// The answer is too large, or is not what the API's documentation describes.
    Unreadable(String),
}

impl EngineError {
    /// The sentence.
    pub fn message(&self) -> &str {
        match self {
            Self::Unavailable(message)
            | Self::Untrusted(message)
            | Self::TooOld(message)
            | Self::Invalid(message)
            | Self::NotFound(message)
            | Self::Conflict(message)
            | Self::Refused(message)
            | Self::Unreadable(message) => message,
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for EngineError {}

/// Returns an engine's own words on one line, safe to show.
pub(super) fn engine_words(text: &str) -> String {
    sanitize(&shorten(text.trim(), MAX_MESSAGE_CHARS))
}
