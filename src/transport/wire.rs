//! What can be written to a client's stream before the answer.

use serde_json::{Map, Value, json};

use crate::dispatch::Listing;
use crate::protocol::{Id, Notification, Request, Response, RpcError, Version};

/// A message that can be written.
pub trait Wire: Send + 'static {
    /// Its bytes.
    fn write(&self) -> Vec<u8>;

    /// The progress that it reports, if it reports any.
    fn progress(&self) -> Option<f64>;
}

impl Wire for Notification {
    fn write(&self) -> Vec<u8> {
        Self::write(self)
    }

    fn progress(&self) -> Option<f64> {
        let reports = self.method == "notifications/progress";
        reports.then(|| self.params.get("progress")?.as_f64())?
    }
}

/// What a stateful session's stream carries: notifications, and requests of ours.
#[derive(Debug)]
pub enum ToClient {
    /// Wants no answer.
    Note(Notification),
    /// Wants one, which comes as a POST of its own.
    Ask(Request),
}

impl Wire for ToClient {
    fn write(&self) -> Vec<u8> {
        match self {
            Self::Note(note) => note.write(),
            Self::Ask(request) => serde_json::to_vec(&request.to_value()).unwrap_or_default(),
        }
    }

    fn progress(&self) -> Option<f64> {
        match self {
            Self::Note(note) => note.progress(),
            Self::Ask(_) => None,
        }
    }
}

/// What a request's progress is to be reported under, if its client wants to hear of it.
pub fn progress_token(params: &Map<String, Value>) -> Option<Value> {
    params.get("_meta")?.get("progressToken").cloned()
}

/// The bytes of an answer with a result or an error.
pub fn answer(id: Option<&Id>, outcome: Result<&Value, &RpcError>) -> Vec<u8> {
    Response::write(id, outcome)
}

/// The bytes of an answer with a list, as a revision has it.
pub fn listed(id: &Id, list: &Listing, version: Version) -> Vec<u8> {
    Response::write(Some(id), Ok(list.text(version)))
}

/// A refusal's body: a JSON-RPC error, with the request's id where it is known.
pub fn error(id: Option<&Id>, error: &RpcError) -> Vec<u8> {
    if id.is_some() {
        return answer(id, Err(error));
    }
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    serde_json::to_vec(&body).unwrap_or_default()
}
