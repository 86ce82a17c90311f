//! Looks at a message of the server's, just as far as carrying it takes.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::Id;

/// What is looked at.
#[derive(Deserialize)]
pub struct Peek<'a> {
    /// The id, where it has one that can be read.
    #[serde(default)]
    pub id: Option<Id>,
    /// The method, where it is no answer.
    #[serde(default)]
    pub method: Option<String>,
    /// The parameters of what is no answer.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// The result of an answer.
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    /// What an answer says instead.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

impl<'a> Peek<'a> {
    /// Looks; none where it is no object of this kind.
    pub fn at(message: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }

    /// Whether it is the answer to a request.
    pub fn answers(&self, id: &Id) -> bool {
        self.method.is_none()
            && (self.result.is_some() || self.error.is_some())
            && self.id.as_ref() == Some(id)
    }
}
