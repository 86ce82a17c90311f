//! What the MCP endpoint holds: the engine, the guard, the sessions.

use std::sync::Arc;

use hyper::{Response, StatusCode};

use super::{sessions::Sessions, wire};
use crate::dispatch::{Context, Engine};
use crate::guard::{Admitted, Guard};
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

/// Who sent an admitted request, and from where.
pub fn sender(admitted: &Admitted) -> Context {
    Context::of(admitted.who().clone(), Some(admitted.peer().ip()))
}

/// A JSON-RPC error with an HTTP status.
pub fn refuse(status: StatusCode, id: Option<&Id>, error: &RpcError) -> Response<Body> {
    json(status, wire::error(id, error))
}
