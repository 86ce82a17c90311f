//! HTTP+SSE of 2024-11-05, which is deprecated: one stream for the server's messages, POSTs for the client's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hyper::{Response, StatusCode};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::duplex::{ClientInput, DuplexConnection};
use super::endpoint::{Endpoint, refuse, sender};
use super::relay::ClientLine;
use super::stream::AcceptedForms;
use gatewren_base::sys::lock;
use gatewren_gate::guard::{Admitted, ClientRequestId, Refusal};
use gatewren_gate::http::{EventSender, ResponseBody, empty, events};
use gatewren_wire::protocol::{RequestMeta, RpcBody as Messages, RpcError, RpcMessage, read};

/// The maximum number of queued messages; a client that does not read its stream gets 503 for further ones.
const QUEUED: usize = 16;

/// The open connections. The agents' limits of streams also limit their number.
pub struct HttpSse {
    endpoint: Arc<Endpoint>,
    open: Arc<Open>,
}

/// The open connections, by the name that was sent on their stream.
type Open = Mutex<HashMap<Uuid, Half>>;

/// The receiving half of a connection.
#[derive(Clone)]
struct Half {
    agent: String,
    arrivals: mpsc::Sender<ClientInput>,
}

impl HttpSse {
    /// Creates an empty table.
    pub fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            open: Arc::default(),
        }
    }

    /// Ends every open connection, because the owner has disabled this transport. Calls in progress are still
    /// answered.
    pub fn close(&self) {
        lock(&self.open).clear();
    }

    /// GET: opens a connection. It ends with this stream, together with everything it has in progress.
    pub fn stream(&self, admitted: &Admitted) -> Response<ResponseBody> {
        let accepts = AcceptedForms::read(&admitted.head().headers, true);
        if !accepts.events && !accepts.anything {
            let error =
                RpcError::invalid_request("a stream requires the header Accept: text/event-stream");
            return refuse(StatusCode::NOT_ACCEPTABLE, None, &error);
        }
        let (link, lines) = match DuplexConnection::open(&self.endpoint, sender(admitted)) {
            Ok(opened) => opened,
            Err(refusal) => return self.endpoint.reject(&refusal),
        };
        let (arrivals, arrived) = mpsc::channel(QUEUED);
        let agent = admitted.who().agent_id().as_str().to_owned();
        let entry = Entry::new(&self.open, Half { agent, arrivals });
        events(move |sender| async move {
            let address = format!("/message?sessionId={}", entry.name);
            if sender.send_event("endpoint", &address).await.is_ok() {
                tokio::join!(link.run(arrived), write(&sender, lines));
            }
            drop(entry);
        })
    }

    /// POST: a message for a connection; its answer is sent on the connection's stream.
    pub fn message(&self, admitted: &Admitted) -> Response<ResponseBody> {
        let Some(half) = self.find(admitted) else {
            let words = "unknown connection, or its stream has ended; open one with GET /sse";
            return refuse(
                StatusCode::NOT_FOUND,
                None,
                &RpcError::invalid_request(words),
            );
        };
        let messages = match read(admitted.body()) {
            Ok(messages) => messages,
            Err((id, error)) => return refuse(StatusCode::BAD_REQUEST, id.as_ref(), &error),
        };
        if claims_modern(&messages) {
            let error = RpcError::invalid_request("2026-07-28 is not supported here; use /mcp");
            return refuse(StatusCode::BAD_REQUEST, None, &error);
        }
        let client_request = ClientRequestId::of(&admitted.head().extensions);
        match half
            .arrivals
            .try_send(ClientInput::Whole(messages, client_request))
        {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(_) => self.endpoint.reject(&Refusal::later(
                StatusCode::SERVICE_UNAVAILABLE,
                "unread",
                "the client does not read this connection's stream, or the stream has just ended",
                1,
            )),
        }
    }

    /// Returns the connection that a message names, if it belongs to the same agent.
    fn find(&self, admitted: &Admitted) -> Option<Half> {
        let query = admitted.head().uri.query()?;
        let mut named = query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, name) = named.find(|(key, _)| *key == "sessionId")?;
        let name = Uuid::parse_str(name).ok()?;
        let half = lock(&self.open).get(&name).cloned()?;
        (half.agent == admitted.who().agent_id().as_str()).then_some(half)
    }
}

/// An entry in the table of open connections, which is removed on drop.
struct Entry {
    open: Arc<Open>,
    name: Uuid,
}

impl Entry {
    fn new(open: &Arc<Open>, half: Half) -> Self {
        // Random, so that it cannot be guessed.
        let name = Uuid::new_v4();
        lock(open).insert(name, half);
        Self {
            open: open.clone(),
            name,
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.name);
    }
}

async fn write(sender: &EventSender, mut lines: mpsc::Receiver<ClientLine>) {
    while let Some(line) = lines.recv().await {
        if let Some(bytes) = line.into_bytes()
            && sender.message(None, &bytes).await.is_err()
        {
            return;
        }
    }
}

fn claims_modern(messages: &Messages) -> bool {
    let claims = |message: &RpcMessage| RequestMeta::is_claimed_by(message);
    match messages {
        Messages::Single(message) => claims(message),
        Messages::Batch(batch) => batch.iter().any(claims),
    }
}
