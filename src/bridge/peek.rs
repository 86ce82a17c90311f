//! Parses only the parts of a server's message that forwarding needs.

use serde::Deserialize;
use serde_json::value::RawValue;

use gatewren_protocol::RequestId;

/// The parsed parts.
#[derive(Deserialize)]
pub struct PeekedMessage<'a> {
    /// The id, if it is valid.
    #[serde(default)]
    pub id: Option<RequestId>,
    /// The method, if it is not a response.
    #[serde(default)]
    pub method: Option<String>,
    /// The parameters, if it is not a response.
    #[serde(borrow, default)]
    pub params: Option<&'a RawValue>,
    /// The result of a response.
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    /// The error of a response.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
}

impl<'a> PeekedMessage<'a> {
    /// Parses a message; `None` if it is not such an object.
    pub fn at(message: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }

    /// Whether it is the response to this request.
    pub fn answers(&self, id: &RequestId) -> bool {
        self.method.is_none()
            && (self.result.is_some() || self.error.is_some())
            && self.id.as_ref() == Some(id)
    }
}
