//! Why a request has no response, and whether the server may have received it.

use gatewren_http_client::HttpClientError;

/// Why there is no response.
#[derive(Debug, Clone)]
pub struct UpstreamError {
    /// What went wrong and what to do.
    pub words: String,
    /// Whether a retry can help.
    pub delivery: DeliveryStatus,
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
    pub fn new(delivery: DeliveryStatus, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { words, delivery }
    }

    /// Whether a retry is useful and safe.
    pub fn may_retry(&self, repeatable: bool) -> bool {
        match self.delivery {
            DeliveryStatus::Away => true,
            DeliveryStatus::Unknown => repeatable,
            DeliveryStatus::Never => false,
        }
    }
}

impl From<HttpClientError> for UpstreamError {
    fn from(cause: HttpClientError) -> Self {
        if let Some(why) = cause.certificate_error() {
            let words = format!(
                "the server's identity cannot be verified ({why}), and nothing was sent. Without a pin, this machine \
                 must trust the server's certificate: pass the pin that `gatewren pair` prints. With a pin, either \
                 another machine intercepts the connection, or the server has a new key"
            );
            return Self::new(DeliveryStatus::Never, words);
        }
        match cause {
            HttpClientError::Address(words) => Self::new(DeliveryStatus::Never, words),
            HttpClientError::Connection(cause) => {
                let words = format!("the server cannot be reached: {cause}");
                Self::new(DeliveryStatus::Away, words)
            }
            HttpClientError::Http(cause) => {
                let words = format!("the connection to the server broke: {cause}");
                Self::new(DeliveryStatus::Unknown, words)
            }
            other => Self::new(DeliveryStatus::Unknown, other.to_string()),
        }
    }
}
