//! The state of the MCP endpoint: the engine, the guard and the sessions.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Response, StatusCode};

use uuid::Uuid;

use super::sessions::registry::Sessions;
use super::wire;
use crate::dispatch::{CallContext, Engine, HeldResource};
use gatewren_base::config::LiveSettings;
use gatewren_gate::guard::{Admitted, ClientRequestId, Guard, Refusal};
use gatewren_gate::http::{ResponseBody, json};
use gatewren_wire::protocol::{Params, RequestId, RpcError};

/// The MCP endpoint.
pub struct Endpoint {
    engine: Arc<Engine>,
    guard: Arc<Guard>,
    sessions: Arc<Sessions>,
    live: LiveSettings,
}

impl Endpoint {
    /// Creates an endpoint over an engine.
    pub fn new(
        engine: Arc<Engine>,
        guard: Arc<Guard>,
        sessions: Arc<Sessions>,
        live: LiveSettings,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            guard,
            sessions,
            live,
        })
    }

    /// Ends expired sessions and records the use of the others, for as long as it is polled.
    pub async fn keep_sessions(self: Arc<Self>) {
        self.sessions.keep().await;
    }

    /// Records the use of sessions once more: the last step before the server ends.
    pub async fn note_sessions(&self) {
        self.sessions.note().await;
    }

    /// The engine that answers its calls.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The guard that admits its requests.
    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// The interval of keep-alive notifications for a call that reports no progress itself; zero disables them.
    pub(super) fn heartbeat(&self) -> Duration {
        self.live.read(|settings| settings.limits.heartbeat)
    }

    /// The number of open sessions of an agent, or of all agents.
    pub fn count_sessions(&self, agent: Option<&str>) -> usize {
        self.sessions.count(agent)
    }

    /// Whether there is an open session of this name, of any agent.
    pub fn has_session(&self, name: Uuid) -> bool {
        self.sessions.has(name)
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Reserves a slot for a call, which is released when the last holder drops it.
    pub(super) fn call(
        &self,
        sender: &CallContext,
        method: &str,
        params: &Params,
    ) -> Result<HeldResource, Refusal> {
        let only_reads = self.engine.only_reads(method, params);
        let place = self.guard.call(&sender.who, only_reads)?;
        Ok(Arc::new((place, self.engine.metrics.call())))
    }

    /// Reserves a slot for a call; waits a short time if none is free.
    pub(super) async fn call_in_time(
        &self,
        sender: &CallContext,
        method: &str,
        params: &Params,
    ) -> Result<HeldResource, Refusal> {
        let only_reads = self.engine.only_reads(method, params);
        let place = self.guard.call_in_time(&sender.who, only_reads).await?;
        Ok(Arc::new((place, self.engine.metrics.call())))
    }

    /// Reserves a slot for a stream.
    pub(super) fn stream(&self, sender: &CallContext) -> Result<HeldResource, Refusal> {
        let place = self.guard.stream(&sender.who)?;
        Ok(Arc::new((place, self.engine.metrics.stream())))
    }

    /// The response to an authenticated request that exceeds a limit.
    pub(super) fn reject(&self, refusal: &Refusal) -> Response<ResponseBody> {
        self.engine.metrics.count_refusal(refusal.error);
        refusal.to_response()
    }
}

/// The sender of an admitted request, with its address.
pub fn sender(admitted: &Admitted) -> CallContext {
    CallContext {
        client_request: ClientRequestId::of(&admitted.head().extensions),
        ..CallContext::of(admitted.who().clone(), Some(admitted.peer().ip()))
    }
}

/// A JSON-RPC error with an HTTP status.
pub fn refuse(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Response<ResponseBody> {
    json(status, wire::error(id, error))
}
