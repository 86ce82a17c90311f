//! The session and the revision of a stateful request, or the response if there is none.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::session::Session;
use crate::transport::endpoint::{Endpoint, refuse};
use crate::transport::headers;
use gatewren_gate::guard::Admitted;
use gatewren_gate::http::ResponseBody;
use gatewren_wire::protocol::{RequestId, RpcError, Version};

/// The header of the session id.
pub const SESSION: &str = "mcp-session-id";

/// Why a request has no session.
#[derive(Debug)]
pub struct SessionLookupError(StatusCode, RpcError);

impl SessionLookupError {
    /// The error response, with the request's id if it has one.
    pub fn to_response(&self, id: Option<&RequestId>) -> Response<ResponseBody> {
        refuse(self.0, id, &self.1)
    }
}

/// Returns the session that a request names.
pub fn find(endpoint: &Endpoint, admitted: &Admitted) -> Result<Arc<Session>, SessionLookupError> {
    let missing = || {
        let words = "the header Mcp-Session-Id is missing; initialize returns one";
        SessionLookupError(StatusCode::BAD_REQUEST, RpcError::invalid_request(words))
    };
    let id = headers::single(&admitted.head().headers, SESSION).map_err(|_| missing())?;
    let agent = admitted.who().agent_id().as_str();
    endpoint
        .sessions()
        .find(id.ok_or_else(missing)?, agent)
        .ok_or_else(|| {
            let words = "unknown or ended session; initialize again";
            SessionLookupError(StatusCode::NOT_FOUND, RpcError::invalid_request(words))
        })
}

/// Checks that the version header of a stateful request is absent or names a stateful revision.
pub fn check_version(admitted: &Admitted) -> Result<(), SessionLookupError> {
    let named = headers::single(&admitted.head().headers, headers::VERSION)
        .ok()
        .flatten();
    match named {
        Some(date) if Version::parse(date).is_none() => {
            let words = "the header MCP-Protocol-Version names an unsupported version; supported are 2024-11-05, \
                         2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28";
            Err(SessionLookupError(
                StatusCode::BAD_REQUEST,
                RpcError::invalid_request(words),
            ))
        }
        _ => Ok(()),
    }
}
