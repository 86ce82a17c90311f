//! Forwards the server's response to the client, as a whole or event by event.

use hyper::header::HeaderMap;
use serde_json::Value;

use super::output::ClientOutput;
use super::peek::PeekedMessage;
use super::request_error::{DeliveryStatus, UpstreamError};
use super::server::{UpstreamResponse, UpstreamServer};
use gatewren_protocol::{RequestId, RpcError};

/// How many characters of a non-protocol response go into an error.
const MAX_SAID: usize = 300;

/// How forwarding a response ended.
pub enum ForwardOutcome {
    /// The client has the response. Holds the message itself if it was requested.
    Answered(Option<Vec<u8>>),
    /// The response did not arrive.
    Cut {
        /// The id of the last event, after which the stream can be resumed.
        last: Option<String>,
        /// The reason.
        why: UpstreamError,
    },
}

/// Where a response goes.
#[derive(Clone, Copy)]
pub struct ResponseRoute<'a> {
    /// The server.
    pub server: &'a UpstreamServer,
    /// The client; `None` for requests of the bridge itself.
    pub output: Option<&'a ClientOutput>,
    /// Whether the response is also returned to the caller.
    pub keeps: bool,
}

impl ResponseRoute<'_> {
    async fn send(&self, message: Vec<u8>) {
        if let Some(output) = self.output {
            output.send(message).await;
        }
    }

    /// Forwards all messages up to the response to this request.
    pub async fn forward(self, answer: UpstreamResponse, id: &RequestId) -> ForwardOutcome {
        let cut = |why| ForwardOutcome::Cut { last: None, why };
        if answer.is_stream() {
            return self.forward_events(answer, id).await;
        }
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = match self.server.whole(answer).await {
            Ok(body) => body,
            Err(why) => return cut(why),
        };
        if PeekedMessage::at(&body).is_some_and(|peek| peek.answers(id)) {
            let message = self.keeps.then(|| body.to_vec());
            self.send(body.to_vec()).await;
            return ForwardOutcome::Answered(message);
        }
        if status.is_success() {
            let words = "the server's response does not match this request";
            return cut(UpstreamError::new(DeliveryStatus::Unknown, words));
        }
        cut(UpstreamError::new(
            DeliveryStatus::Never,
            rejection_text(&headers, status.as_str(), &body),
        ))
    }

    async fn forward_events(self, answer: UpstreamResponse, id: &RequestId) -> ForwardOutcome {
        let (mut events, _wire) = answer.events();
        let mut last = None;
        loop {
            let event = match events.next().await {
                Ok(Some(event)) => event,
                Ok(None) => {
                    let words = "the server ended the stream before the response";
                    let why = UpstreamError::new(DeliveryStatus::Unknown, words);
                    return ForwardOutcome::Cut { last, why };
                }
                Err(why) => return ForwardOutcome::Cut { last, why },
            };
            last = event.id.or(last);
            if event.data.is_empty() {
                continue;
            }
            let answers = PeekedMessage::at(&event.data).is_some_and(|peek| peek.answers(id));
            let message = (answers && self.keeps).then(|| event.data.clone());
            self.send(event.data).await;
            if answers {
                return ForwardOutcome::Answered(message);
            }
        }
    }
}

/// Returns the error text of a rejected request, for the client.
pub fn rejection_text(headers: &HeaderMap, status: &str, body: &[u8]) -> String {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let text = value.as_ref().and_then(|value| {
        let inner = value.pointer("/error/message");
        inner.or_else(|| value.get("message"))?.as_str()
    });
    let text: String = text.unwrap_or_default().chars().take(MAX_SAID).collect();
    let hint = if status == "401" && headers.contains_key("www-authenticate") {
        "; the token is invalid, expired or revoked: pair this client again with `gatewren pair` on the server"
    } else {
        ""
    };
    let colon = if text.is_empty() { "" } else { ": " };
    format!("the server rejected the request ({status}){colon}{text}{hint}")
}

/// Returns the error that the client gets for a request without a response.
pub fn client_error(failure: &UpstreamError, repeatable: bool) -> RpcError {
    let unknown = failure.delivery == DeliveryStatus::Unknown && !repeatable;
    let hint = if unknown {
        "; it is unknown whether the request was carried out: check before you repeat it"
    } else {
        ""
    };
    let words = format!("{}{hint}", failure.words);
    RpcError::new(gatewren_protocol::code::INTERNAL, words)
}

/// Whether a request may be repeated when it is unknown whether the server received it: it changes
/// nothing, or repeating it changes nothing more. A tool call may do anything, so it is not
/// repeatable.
pub fn is_repeatable(method: &str) -> bool {
    matches!(
        method,
        "initialize"
            | "ping"
            | "server/discover"
            | "subscriptions/listen"
            | "logging/setLevel"
            | "completion/complete"
    ) || method.ends_with("/list")
        || matches!(
            method,
            "prompts/get" | "tasks/get" | "tasks/cancel" | "tasks/result"
        )
        || method.starts_with("resources/")
}
