//! What the MCP endpoint holds: the engine, the guard, the sessions.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Response, StatusCode};

use super::{sessions::Sessions, wire};
use crate::config::Live;
use crate::dispatch::{Context, Engine, Held};
use crate::guard::{Admitted, Guard, Refusal};
use crate::http::{Body, json};
use crate::protocol::{Id, Params, RpcError};

/// The MCP endpoint.
pub struct Endpoint {
    engine: Arc<Engine>,
    guard: Arc<Guard>,
    sessions: Arc<Sessions>,
    live: Live,
}

impl Endpoint {
    /// An endpoint over an engine.
    pub fn new(
        engine: Arc<Engine>,
        guard: Arc<Guard>,
        sessions: Arc<Sessions>,
        live: Live,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            guard,
            sessions,
            live,
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

    /// How often a call that reports no progress itself is shown to be alive; never when that is zero.
    pub(super) fn heartbeat(&self) -> Duration {
        self.live.read(|settings| settings.limits.heartbeat)
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// A place for a call, counted until nobody holds it any more.
    pub(super) fn call(
        &self,
        sender: &Context,
        method: &str,
        params: &Params,
    ) -> Result<Held, Refusal> {
        let only_reads = self.engine.only_reads(method, params);
        let place = self.guard.call(&sender.who, only_reads)?;
        Ok(Arc::new((place, self.engine.metrics.call())))
    }

    /// The same; waits a short time for a place where there is none.
    pub(super) async fn call_in_time(
        &self,
        sender: &Context,
        method: &str,
        params: &Params,
    ) -> Result<Held, Refusal> {
        let only_reads = self.engine.only_reads(method, params);
        let place = self.guard.call_in_time(&sender.who, only_reads).await?;
        Ok(Arc::new((place, self.engine.metrics.call())))
    }

    /// A place for a stream, the same way.
    pub(super) fn stream(&self, sender: &Context) -> Result<Held, Refusal> {
        let place = self.guard.stream(&sender.who)?;
        Ok(Arc::new((place, self.engine.metrics.stream())))
    }

    /// The response to a request that came in and found no place.
    pub(super) fn turn_away(&self, refusal: &Refusal) -> Response<Body> {
        self.engine.metrics.refused(refusal.error);
        refusal.to_response()
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
