//! The bytes of an answer: in one, or in parts where a long text that others share is among them.

use bytes::Bytes;

/// What goes out as one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parts {
    /// All of it.
    One(Vec<u8>),
    /// One behind the other.
    Many(Vec<Bytes>),
}

impl Parts {
    /// All of it in one, for a way out that knows no parts: a long text is copied once.
    pub fn into_one(self) -> Vec<u8> {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(parts) => parts.concat(),
        }
    }
}

impl From<Vec<u8>> for Parts {
    fn from(bytes: Vec<u8>) -> Self {
        Self::One(bytes)
    }
}
