//! Errors of the connection to the bus.

use std::{fmt, io};

/// Why a call has no answer, or no useful one.
#[derive(Debug)]
pub(super) enum BusError {
    /// The connection could not be made, or was closed.
    Gone(io::Error),
    /// The peer violates the D-Bus specification, or exceeds a limit of this client.
    Malformed(&'static str),
    /// The call was answered with an error, which has a name and usually a message.
    Answer { name: String, words: Option<String> },
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(cause) => cause.fmt(f),
            Self::Malformed(what) => write!(f, "it sent {what}"),
            Self::Answer { name, words } => f.write_str(words.as_ref().unwrap_or(name)),
        }
    }
}

impl From<io::Error> for BusError {
    fn from(cause: io::Error) -> Self {
        Self::Gone(cause)
    }
}
