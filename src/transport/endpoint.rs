//! What the MCP endpoint holds: the engine, the guard, the sessions.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::{sessions::Sessions, wire};
use crate::dispatch::Engine;
use crate::guard::Guard;
use crate::http::{Body, json};
use crate::protocol::{Id, RpcError};

/// The MCP endpoint.
pub struct Endpoint {
    engine: Arc<Engine>,
    guard: Arc<Guard>,
    sessions: Sessions,
}

impl Endpoint {
    /// An endpoint over an engine.
    pub fn new(engine: Arc<Engine>, guard: Arc<Guard>, sessions: Sessions) -> Arc<Self> {
        Arc::new(Self {
            engine,
            guard,
            sessions,
        })
    }

    /// Ends sessions that are over and notes what was used, for as long as it is polled.
    pub async fn keep_sessions(self: Arc<Self>) {
        self.sessions.keep().await;
    }

    /// Notes it once more: the last thing before the server ends.
    pub async fn note_sessions(&self) {
        self.sessions.note().await;
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    pub(super) fn guard(&self) -> &Guard {
        &self.guard
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }
}

/// A JSON-RPC error with an HTTP status.
pub fn refuse(status: StatusCode, id: Option<&Id>, error: &RpcError) -> Response<Body> {
    json(status, wire::error(id, error))
}
