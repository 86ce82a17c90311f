//! The bytes of a response: in one buffer, or in parts if it contains a long shared text.

use bytes::Bytes;

/// The bytes of one message.
///
/// Fast path: figures at `QuotedJson::of`, whose pieces it carries uncopied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageBytes {
    /// The whole message.
    One(Vec<u8>),
    /// Parts in order.
    Many(Vec<Bytes>),
}

impl MessageBytes {
    /// Joins the parts, for an output that supports only one buffer: a long text is copied once.
    pub fn into_one(self) -> Vec<u8> {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(parts) => parts.concat(),
        }
    }
}

impl From<Vec<u8>> for MessageBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::One(bytes)
    }
}
