//! What the parts of the bridge share: the server, the client, the session, and what is under way.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::task::AbortHandle;

use super::headers::{Marked, VERSION};
use super::output::Output;
use super::server::{Asking, Server};
use crate::protocol::{Id, Level};

/// The most resources whose subscriptions are made anew in a new session; the client must subscribe to others itself.
pub const MAX_URIS: usize = 256;

/// The session's header.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What the parts share.
pub struct Link {
    /// The other side.
    pub server: Server,
    /// This side.
    pub output: Output,
    /// Held while a session is made anew: one does it, the others wait for it.
    pub renewing: tokio::sync::Mutex<()>,
    session: Mutex<Session>,
    /// What the client said that a new session must hear as well.
    kept: Mutex<Kept>,
    /// Requests that the client may give up.
    under_way: Mutex<HashMap<Id, UnderWay>>,
    /// What tools want repeated in headers.
    pub marked: Mutex<Marked>,
}

/// A request that the client may give up.
pub struct UnderWay {
    /// Whether it stands alone: closing its stream is how the server hears that it was given up.
    pub alone: bool,
    /// What carries it.
    pub carrier: AbortHandle,
}

/// The session with the server.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// Counts the sessions there were.
    pub number: u64,
    /// What the server calls it; none before there is one, and where it keeps none.
    pub id: Option<HeaderValue>,
    /// The version that was agreed on.
    pub version: Option<String>,
}

/// What a new session must hear.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// The client's `initialize` and its id.
    pub hello: Option<(Id, Bytes)>,
    /// What it set as the least serious message of the log.
    pub level: Option<Level>,
    /// What it has subscribed to.
    pub uris: BTreeSet<String>,
}

impl Link {
    /// Between a server and a client.
    pub fn new(server: Server, output: Output) -> Self {
        Self {
            server,
            output,
            renewing: tokio::sync::Mutex::default(),
            session: Mutex::default(),
            kept: Mutex::default(),
            under_way: Mutex::default(),
            marked: Mutex::default(),
        }
    }

    /// The session as it is now.
    pub fn session(&self) -> Session {
        lock(&self.session).clone()
    }

    /// Puts a session in the place of the one before.
    pub fn begin_session(&self, answer: &HeaderMap) {
        let mut session = lock(&self.session);
        session.number += 1;
        session.id = answer.get(SESSION).cloned();
    }

    /// Notes what was agreed on.
    pub fn agree(&self, version: String) {
        lock(&self.session).version = Some(version);
    }

    /// What the client said that must be heard again.
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    /// Notes a request.
    pub fn began(&self, id: Id, request: UnderWay) {
        lock(&self.under_way).insert(id, request);
    }

    /// Takes it out again.
    pub fn ended(&self, id: &Id) -> Option<UnderWay> {
        lock(&self.under_way).remove(id)
    }

    /// Whether a request of this id is under way.
    pub fn has(&self, id: &Id) -> bool {
        lock(&self.under_way).contains_key(id)
    }
}

impl Session {
    /// A request in this session.
    pub fn asking(&self, method: Method, body: Bytes, repeatable: bool) -> Asking {
        let mut headers = HeaderMap::new();
        if let Some(id) = &self.id {
            headers.insert(SESSION, id.clone());
        }
        let version = self.version.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(version)) = version {
            headers.insert(VERSION, version);
        }
        Asking {
            method,
            headers,
            body,
            repeatable,
        }
    }

    /// Whether an answer says that the session is over. What was asked in it was not begun.
    pub fn is_over(&self, status: StatusCode) -> bool {
        self.id.is_some() && status == StatusCode::NOT_FOUND
    }
}

/// Nothing that holds one of these locks can fail, so what is in them is whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
