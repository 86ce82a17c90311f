//! What goes wrong between here and the bus.

use std::{fmt, io};

/// Why there is no answer, or none that helps.
#[derive(Debug)]
pub(super) enum BusError {
    /// The connection could not be made, or ended.
    Gone(io::Error),
    /// It does not speak D-Bus as the specification has it, or says more than is taken.
    Malformed(&'static str),
    /// The answer to a call is an error, which has a name and mostly words.
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
