//! Why a message did not reach the owner.

use std::fmt;

use gatewren_base::sys::FileError;
use gatewren_gate::http::HttpClientError;
use gatewren_host::backends::{BackendError, ErrorKind};
use gatewren_store::vault::VaultError;

/// Why a channel did not accept a message.
#[derive(Debug)]
pub enum DeliveryError {
    /// The server could not be reached or rejected it.
    Refused(HttpClientError),
    /// Its token cannot be used.
    Token(FileError),
    /// The helper did not send it.
    Mail(BackendError),
    /// The device does not take messages any more.
    Gone,
    /// The subscription of the device is invalid.
    Device,
    /// The key for push services cannot be used.
    Key,
    /// There is no device.
    NoDevice,
    /// The vault cannot be used.
    Vault(VaultError),
}

impl DeliveryError {
    /// Returns whether retrying is useless until the settings change.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Token(_)
            | Self::Gone
            | Self::Device
            | Self::Key
            | Self::NoDevice
            | Self::Refused(HttpClientError::Address(_)) => true,
            Self::Refused(HttpClientError::Status(status)) => {
                let busy = [408, 425, 429].contains(&status.as_u16());
                !status.is_server_error() && !busy
            }
            Self::Refused(_) | Self::Vault(_) => false,
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
            Self::Mail(_) | Self::Vault(_) => "the server could not send it".to_owned(),
            other => other.to_string(),
        }
    }
}

/// The message for the owner. It leaves out the address, which may be a secret.
impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(cause @ (HttpClientError::Slow | HttpClientError::Connection(_))) => {
                let words = "the service can reach only the local network, unless its unit was changed, which \
                             `gatewren notify push on` does: gatewren(8), \"Notifications\"";
                write!(f, "{cause}; {words}")
            }
            Self::Refused(cause) => cause.fmt(f),
            Self::Token(cause) => cause.fmt(f),
            Self::Mail(cause) => cause.fmt(f),
            Self::Vault(cause) => cause.fmt(f),
            Self::Gone => f.write_str("the device has ended its subscription, and was removed"),
            Self::Device => {
                f.write_str("the subscription is invalid; remove the device and add it again")
            }
            Self::Key => f.write_str("the key for push services cannot be used"),
            Self::NoDevice => f.write_str("there is no such device"),
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
