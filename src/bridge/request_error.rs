//! Why a request has no response, and whether the server may have received it.

use gatewren_gate::http::RemoteConnectionError;

/// Why there is no response.
#[derive(Debug, Clone)]
pub struct UpstreamError {
    /// What went wrong and what to do.
    pub words: String,
    /// Whether a retry can help.
    pub standing: DeliveryStatus,
}

/// Whether the server received the request, and whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// The server did not receive it, and may be reachable again soon.
    Away,
    /// The server may have received the request and carried it out.
    Unknown,
    /// It is the wrong server, or it cannot be asked at all; waiting does not help.
    Never,
}

impl UpstreamError {
    /// Returns an error of this kind.
    pub fn new(standing: DeliveryStatus, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { words, standing }
    }

    /// Whether a retry is useful and safe.
    pub fn may_pass(&self, repeatable: bool) -> bool {
        match self.standing {
            DeliveryStatus::Away => true,
            DeliveryStatus::Unknown => repeatable,
            DeliveryStatus::Never => false,
        }
    }
}

impl From<RemoteConnectionError> for UpstreamError {
    fn from(cause: RemoteConnectionError) -> Self {
        let standing = match &cause {
            RemoteConnectionError::Away(_) => DeliveryStatus::Away,
            RemoteConnectionError::Broken(_) => DeliveryStatus::Unknown,
            RemoteConnectionError::Stranger(_) | RemoteConnectionError::Address(_) => {
                DeliveryStatus::Never
            }
        };
        Self::new(standing, cause.to_string())
    }
}
