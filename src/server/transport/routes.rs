//! `/mcp`: dispatches by HTTP method and era. One endpoint serves both eras; the request's own claim decides.

use std::sync::Arc;

use hyper::{Method, StatusCode};

use super::endpoint::{Endpoint, refuse};
use super::response_future::RequestAnswer;
use super::sessions::session_stream;
use super::{headers, stateful, stateless};
use gatewren_gate::guard::{Admitted, Refusal};
use gatewren_wire::protocol::{RequestMeta, RpcBody as Messages, RpcError, Version, read};

impl Endpoint {
    /// Answers an admitted request.
    pub fn answer(self: &Arc<Self>, admitted: &Admitted) -> RequestAnswer {
        match admitted.head().method {
            Method::POST => self.post(admitted),
            Method::GET | Method::DELETE if claims_modern(admitted) => {
                Refusal::not_allowed("POST").to_response().into()
            }
            Method::GET => session_stream::open(self, admitted).into(),
            Method::DELETE => stateful::end_session(self, admitted),
            _ => Refusal::not_allowed("POST, GET, DELETE, OPTIONS")
                .to_response()
                .into(),
        }
    }

    fn post(self: &Arc<Self>, admitted: &Admitted) -> RequestAnswer {
        let messages = match read(admitted.body()) {
            Ok(messages) => messages,
            Err((id, error)) => return refuse(StatusCode::BAD_REQUEST, id.as_ref(), &error).into(),
        };
        match messages {
            Messages::Batch(batch)
                if batch.iter().any(RequestMeta::is_claimed_by) || claims_modern(admitted) =>
            {
                let error = RpcError::invalid_request(
                    "2026-07-28 does not support batches; send one message",
                );
                refuse(StatusCode::BAD_REQUEST, None, &error).into()
            }
            Messages::Batch(batch) => stateful::answer_batch(self, admitted, batch),
            Messages::Single(message)
                if RequestMeta::is_claimed_by(&message) || claims_modern(admitted) =>
            {
                stateless::answer(self, admitted, message)
            }
            Messages::Single(message) => stateful::answer(self, admitted, message),
        }
    }
}

/// Whether a header claims the stateless era; a repeated header counts as a claim, and is refused there.
fn claims_modern(admitted: &Admitted) -> bool {
    headers::single(&admitted.head().headers, headers::VERSION)
        .map_or(true, |version| version.is_some_and(Version::claims_modern))
}
