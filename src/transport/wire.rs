//! What can be written to a client's stream before the answer.

use serde_json::Value;

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

/// The bytes of an answer with a result or an error.
pub fn answer(id: Option<&Id>, outcome: Result<&Value, &RpcError>) -> Vec<u8> {
    Response::write(id, outcome)
}

/// The bytes of an answer with a list, as a revision has it.
pub fn listed(id: &Id, list: &Listing, version: Version) -> Vec<u8> {
    let text = list.text(version);
    Response::write_into(text.get().len() + 256, Some(id), Ok(text))
}

/// A refusal's body: a JSON-RPC error, with the request's id where it is known. Where it is not there is none:
/// unlike JSON-RPC itself, MCP knows no id that is null.
pub fn error(id: Option<&Id>, error: &RpcError) -> Vec<u8> {
    answer(id, Err(error))
}
