//! What a client sends about a call or a question that is at another front: a cancellation or an answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::session::Session;
use gatewren_wire::protocol::RequestId;

/// A message for the front that has the call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PassedMessage {
    /// The client cancels the call with this id.
    Cancel(RequestId),
    /// The client answers the question with this id: a result or an error.
    Answer(RequestId, Result<Value, Value>),
}

impl PassedMessage {
    /// Delivers it; returns whether this front has the call.
    pub fn deliver(self, session: &Session) -> bool {
        match self {
            Self::Cancel(id) => session.cancel(&id),
            Self::Answer(id, answer) => session.deliver(&id, answer).is_none(),
        }
    }
}
