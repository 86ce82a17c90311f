//! Messages that can be written to a client's stream before the answer.

use serde_json::Value;

use crate::dispatch::Listing;
use gatewren_wire::protocol::{
    Notification, RequestId, RpcError, RpcRequest, RpcResponse, Version,
};

/// A message that can be serialized.
pub trait WireMessage: Send + 'static {
    /// Its bytes.
    fn write(&self) -> Vec<u8>;

    /// Adds to the progress that it reports and to its total, and returns the sum; `None` if it reports none.
    fn raise_progress(&mut self, by: f64) -> Option<f64>;
}

impl WireMessage for Notification {
    fn write(&self) -> Vec<u8> {
        Self::write(self)
    }

    fn raise_progress(&mut self, by: f64) -> Option<f64> {
        if self.method != "notifications/progress" {
            return None;
        }
        let progress = self.params.get("progress")?.as_f64()? + by;
        if by > 0.0 {
            self.params.insert("progress".to_owned(), progress.into());
            if let Some(total) = self.params.get("total").and_then(Value::as_f64) {
                self.params.insert("total".to_owned(), (total + by).into());
            }
        }
        Some(progress)
    }
}

/// A message on a stateful session's stream: a notification, or a request of the server.
#[derive(Debug)]
pub enum ClientMessage {
    /// A notification.
    Note(Notification),
    /// A request; the client answers with a separate POST.
    Ask(RpcRequest),
}

impl WireMessage for ClientMessage {
    fn write(&self) -> Vec<u8> {
        match self {
            Self::Note(note) => note.write(),
            Self::Ask(request) => serde_json::to_vec(&request.to_value()).unwrap_or_default(),
        }
    }

    fn raise_progress(&mut self, by: f64) -> Option<f64> {
        match self {
            Self::Note(note) => note.raise_progress(by),
            Self::Ask(_) => None,
        }
    }
}

/// Serializes an answer with a result or an error.
pub fn answer(id: Option<&RequestId>, outcome: Result<&Value, &RpcError>) -> Vec<u8> {
    RpcResponse::write(id, outcome)
}

/// Serializes an answer with a list, in the shape of a revision.
pub fn list_answer(id: &RequestId, list: &Listing, version: Version) -> Vec<u8> {
    let text = list.text(version);
    RpcResponse::write_into(text.get().len() + 256, Some(id), Ok(text))
}

/// The body of a refusal: a JSON-RPC error with the request's id, if it is known. Otherwise the id is left out:
/// unlike JSON-RPC itself, MCP does not allow a null id.
pub fn error(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    answer(id, Err(error))
}
