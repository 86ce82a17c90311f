//! Why a request has no response, and whether the server may have received it.

use gatewren_gate::http::WireError;

/// Why there is no response.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// What went wrong and what to do.
    pub words: String,
    /// Whether a retry can help.
    pub standing: Standing,
}

/// Whether the server received the request, and whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The server did not receive it, and may be reachable again soon.
    Away,
    /// The server may have received the request and carried it out.
    Unknown,
    /// It is the wrong server, or it cannot be asked at all; waiting does not help.
    Never,
}

impl Trouble {
    /// Returns an error of this kind.
    pub fn new(standing: Standing, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { words, standing }
    }

    /// Whether a retry is useful and safe.
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
