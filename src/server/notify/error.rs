//! Why a message did not reach the owner.

use std::fmt;

use gatewren_base::sys::FileError;
use gatewren_gate::http::HttpClientError;
use gatewren_host::backends::{BackendError, ErrorKind};

/// Why a channel did not accept a message.
#[derive(Debug)]
pub enum DeliveryError {
    /// The server could not be reached or rejected it.
    Refused(HttpClientError),
    /// Its token cannot be used.
    Token(FileError),
    /// The helper did not send it.
    Mail(BackendError),
}

impl DeliveryError {
    /// Returns whether retrying is useless until the settings change.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Token(_) | Self::Refused(HttpClientError::Address(_)) => true,
            Self::Refused(HttpClientError::Status(status)) => {
                let busy = [408, 425, 429].contains(&status.as_u16());
                !status.is_server_error() && !busy
            }
            Self::Refused(_) => false,
            Self::Mail(cause) => cause.kind == ErrorKind::Refused,
        }
    }

    /// Returns a message for agents, without the owner's names, addresses and paths.
    pub fn shortly(&self) -> String {
        match self {
            Self::Token(_) => "its token cannot be used".to_owned(),
            Self::Refused(HttpClientError::Connection(_)) => {
                "there is no connection to it".to_owned()
            }
            Self::Refused(HttpClientError::Http(_)) => "it does not speak HTTP".to_owned(),
            Self::Refused(other) => other.to_string(),
            Self::Mail(_) => "the server could not send it".to_owned(),
        }
    }
}

/// The message for the owner. It leaves out the address, which may be a secret.
impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(cause @ (HttpClientError::Slow | HttpClientError::Connection(_))) => {
                let words = "the service can reach only the local network, unless its unit was changed: \
                             gatewren(8), \"Notifications\"";
                write!(f, "{cause}; {words}")
            }
            Self::Refused(cause) => cause.fmt(f),
            Self::Token(cause) => cause.fmt(f),
            Self::Mail(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for DeliveryError {}

/// Why an agent's message was not sent.
#[derive(Debug)]
pub enum NotifyError {
    /// No channel with this name is open to agents; the names of those that are.
    NoChannel(Vec<String>),
    /// The agent has sent as many messages in an hour as allowed: that number, and the seconds until the next.
    TooMany(u32, u64),
    /// The channel with this name did not accept it.
    Undelivered(String, DeliveryError),
}
