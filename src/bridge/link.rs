//! The shared state of the bridge: the server, the client, the session and the requests in flight.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::task::AbortHandle;

use super::headers::{ParamHeaders, VERSION};
use super::output::ClientOutput;
use super::server::{UpstreamRequest, UpstreamServer};
use gatewren_portable::lock;
use gatewren_protocol::{LogSeverity, RequestId};

/// How many resource subscriptions are renewed in a new session; the client must renew others
/// itself.
pub const MAX_URIS: usize = 256;

/// The header with the session id.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The shared state of the bridge.
pub struct BridgeState {
    /// The server.
    pub server: UpstreamServer,
    /// The client.
    pub output: ClientOutput,
    /// Held while the session is renewed: one task renews it, the others wait.
    pub renewing: tokio::sync::Mutex<()>,
    session: Mutex<BridgeSession>,
    /// Messages of the client that a new session must receive as well.
    setup: Mutex<SessionSetup>,
    /// Requests that the client may cancel.
    in_flight: Mutex<HashMap<RequestId, ForwardedRequest>>,
    /// Arguments that tools want repeated in headers.
    pub marked: Mutex<ParamHeaders>,
}

/// A request that the client may cancel.
pub struct ForwardedRequest {
    /// Whether it is stateless: closing its stream tells the server that it was cancelled.
    pub alone: bool,
    /// The task that forwards it.
    pub carrier: AbortHandle,
}

/// The session with the server.
#[derive(Debug, Clone, Default)]
pub struct BridgeSession {
    /// The number of sessions so far.
    pub number: u64,
    /// The session id; `None` before the session begins, and if the server keeps no sessions.
    pub id: Option<HeaderValue>,
    /// The negotiated protocol version.
    pub version: Option<String>,
}

/// What a new session must be sent again.
#[derive(Debug, Clone, Default)]
pub struct SessionSetup {
    /// The client's `initialize` request and its id.
    pub hello: Option<(RequestId, Bytes)>,
    /// The minimum level of log messages that the client set.
    pub level: Option<LogSeverity>,
    /// The resources that the client has subscribed to.
    pub uris: BTreeSet<String>,
}

impl BridgeState {
    /// Returns the state of a bridge between a server and a client.
    pub fn new(server: UpstreamServer, output: ClientOutput) -> Self {
        Self {
            server,
            output,
            renewing: tokio::sync::Mutex::default(),
            session: Mutex::default(),
            setup: Mutex::default(),
            in_flight: Mutex::default(),
            marked: Mutex::default(),
        }
    }

    /// Returns the current session.
    pub fn session(&self) -> BridgeSession {
        lock(&self.session).clone()
    }

    /// Replaces the session by a new one.
    pub fn begin_session(&self, answer: &HeaderMap) {
        let mut session = lock(&self.session);
        session.number += 1;
        session.id = answer.get(SESSION).cloned();
    }

    /// Stores the negotiated protocol version.
    pub fn set_version(&self, version: String) {
        lock(&self.session).version = Some(version);
    }

    /// Returns the client's messages that a new session needs.
    pub fn setup(&self) -> MutexGuard<'_, SessionSetup> {
        lock(&self.setup)
    }

    /// Registers a request.
    pub fn add_request(&self, id: RequestId, request: ForwardedRequest) {
        lock(&self.in_flight).insert(id, request);
    }

    /// Removes a request.
    pub fn remove_request(&self, id: &RequestId) -> Option<ForwardedRequest> {
        lock(&self.in_flight).remove(id)
    }

    /// Whether a request with this id is in flight.
    pub fn has(&self, id: &RequestId) -> bool {
        lock(&self.in_flight).contains_key(id)
    }
}

impl BridgeSession {
    /// Returns an HTTP request in this session.
    pub fn request(&self, method: Method, body: Bytes, repeatable: bool) -> UpstreamRequest {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        let version = self.version.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(version)) = version {
            headers.insert(VERSION, version);
        }
        UpstreamRequest {
            method,
            headers,
            body,
            repeatable,
        }
    }

    /// Whether a response means that the session has expired. The request was not started in that
    /// case.
    pub fn is_session_expired(&self, status: StatusCode) -> bool {
        self.id.is_some() && status == StatusCode::NOT_FOUND
    }
}
