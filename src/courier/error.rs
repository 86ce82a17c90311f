//! Why the owner was not told.

use std::fmt;

use crate::backends::{BackendError, ErrorKind};
use crate::http::OutwardError;
use crate::sys::FileError;

/// Why a channel did not take something.
#[derive(Debug)]
pub enum Undelivered {
    /// It was not to be reached, or refused.
    Refused(OutwardError),
    /// Its token cannot be used.
    Token(FileError),
    /// The helper did not send it.
    Mail(BackendError),
}

impl Undelivered {
    /// Whether trying again is no use as long as nobody changes the settings.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Token(_) | Self::Refused(OutwardError::Address(_)) => true,
            Self::Refused(OutwardError::Status(status)) => {
                let busy = [408, 425, 429].contains(&status.as_u16());
                !status.is_server_error() && !busy
            }
            Self::Refused(_) => false,
            Self::Mail(cause) => cause.kind == ErrorKind::Refused,
        }
    }

    /// The words for an agent, in which there is no name, address or path of the owner's.
    pub fn shortly(&self) -> String {
        match self {
            Self::Token(_) => "its token cannot be used".to_owned(),
            Self::Refused(OutwardError::Connection(_)) => "there is no connection to it".to_owned(),
            Self::Refused(OutwardError::Http(_)) => "it does not speak HTTP".to_owned(),
            Self::Refused(other) => other.to_string(),
            Self::Mail(_) => "the box could not send it".to_owned(),
        }
    }
}

/// The words for the owner; the address is in none of them, for it may be a secret.
impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(cause @ (OutwardError::Slow | OutwardError::Connection(_))) => write!(
                f,
                "{cause}; the service reaches the local network only, unless its unit was changed: gatewren(8), \
                 \"Notifications\""
            ),
            Self::Refused(cause) => cause.fmt(f),
            Self::Token(cause) => cause.fmt(f),
            Self::Mail(cause) => cause.fmt(f),
        }
    }
}

impl std::error::Error for Undelivered {}

/// Why an agent's words did not reach the owner.
#[derive(Debug)]
pub enum NotSent {
    /// There is no channel of this name that takes them; those that there are.
    NoChannel(Vec<String>),
    /// It has sent as many as it may within an hour: how many those are, and when the next may be sent.
    TooMany(u32, u64),
    /// The channel of this name did not take it.
    Undelivered(String, Undelivered),
}
