//! `/mcp`: verb and era. One endpoint serves both; what a request claims of itself decides.

use std::sync::Arc;

use hyper::{Method, Response, StatusCode};

use super::{
    endpoint::{Endpoint, refuse},
    headers, session_stream, stateful, stateless,
};
use crate::guard::{Admitted, Refusal};
use crate::http::Body;
use crate::protocol::{Body as Messages, RequestMeta, RpcError, Version, read};

impl Endpoint {
    /// Answers an admitted request.
    pub async fn answer(self: &Arc<Self>, admitted: Admitted) -> Response<Body> {
        match admitted.head().method {
            Method::POST => self.post(admitted).await,
            Method::GET | Method::DELETE if claims_modern(&admitted) => {
                Refusal::not_allowed("POST").to_response()
            }
            Method::GET => session_stream::open(self, &admitted),
            Method::DELETE => Box::pin(stateful::end_session(self, &admitted)).await,
            _ => Refusal::not_allowed("POST, GET, DELETE, OPTIONS").to_response(),
        }
    }

    async fn post(self: &Arc<Self>, admitted: Admitted) -> Response<Body> {
        let messages = match read(admitted.body()) {
            Ok(messages) => messages,
            Err((id, error)) => return refuse(StatusCode::BAD_REQUEST, id.as_ref(), &error),
        };
        match messages {
            Messages::Batch(batch)
                if batch.iter().any(RequestMeta::is_claimed_by) || claims_modern(&admitted) =>
            {
                let error =
                    RpcError::invalid_request("2026-07-28 knows no batches; send one message");
                refuse(StatusCode::BAD_REQUEST, None, &error)
            }
            Messages::Batch(batch) => Box::pin(stateful::answer_batch(self, admitted, batch)).await,
            Messages::Single(message)
                if RequestMeta::is_claimed_by(&message) || claims_modern(&admitted) =>
            {
                stateless::answer(self, admitted, message).await
            }
            Messages::Single(message) => stateful::answer(self, admitted, message).await,
        }
    }
}

/// A header that claims the stateless era; two headers claim it too, and are refused there.
fn claims_modern(admitted: &Admitted) -> bool {
    headers::single(&admitted.head().headers, headers::VERSION)
        .map_or(true, |version| version.is_some_and(Version::claims_modern))
}
