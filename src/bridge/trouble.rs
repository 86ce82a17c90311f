//! Why a request has no answer, and whether it may have been heard.

use crate::http::WireError;

/// Why there is no answer.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// What was wrong and what to do.
    pub words: String,
    /// How it stands with the server.
    pub standing: Standing,
}

/// How it stands with the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It heard nothing, and may be there in a moment.
    Away,
    /// It may have heard, and done, what it was asked.
    Unknown,
    /// It is not the one that is meant, or cannot be asked at all: waiting mends nothing.
    Never,
}

impl Trouble {
    /// Trouble of a kind.
    pub fn new(standing: Standing, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { words, standing }
    }

    /// Whether asking again is of use, and safe.
    pub fn may_pass(&self, repeatable: bool) -> bool {
        match self.standing {
            Standing::Away => true,
            Standing::Unknown => repeatable,
            Standing::Never => false,
        }
    }
}

impl From<WireError> for Trouble {
    fn from(cause: WireError) -> Self {
        let standing = match &cause {
            WireError::Away(_) => Standing::Away,
            WireError::Broken(_) => Standing::Unknown,
            WireError::Stranger(_) | WireError::Address(_) => Standing::Never,
        };
        Self::new(standing, cause.to_string())
    }
}
