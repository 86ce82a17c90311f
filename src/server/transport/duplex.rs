//! A connection that carries all messages of one client in both directions: a pipe, or the two halves of HTTP+SSE.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::batch::{BatchError, RequestBatch};
use super::endpoint::Endpoint;
use super::handshake::InitializeRequest;
use super::in_flight::{CallInFlight, InFlight};
use super::keepalive::ProgressKeepAlive;
use super::relay::{ClientLine, ReplyRelay, forward_events};
use super::sessions::session::Session;
use super::sessions::session_token::SessionClaims;
use super::subscription::HeldSubscription;
use super::{methods, running, stateless, wire};
use crate::dispatch::{CallContext, HeldResource, instructions};
use gatewren_gate::guard::{AccessEnd, Refusal};
use gatewren_wire::protocol::{
    IncomingNotification, RequestId, RequestMeta, RpcBody, RpcError, RpcMessage, RpcRequest,
    progress_token,
};

/// The maximum number of queued lines; if the queue is full, the writers wait.
const QUEUED: usize = 16;

/// The maximum number of requests and subscriptions in progress; more are refused. The agent's limits of calls and
/// streams are usually reached first.
const MAX_IN_FLIGHT: usize = 2_048;

/// How long requests in progress may still be answered after the client has closed its input: a script that pipes
/// its requests reads the answers. A client that waits for the server to end waits twice this long.
const GRACE: Duration = Duration::from_secs(1);

/// Input from the client.
pub enum ClientInput {
    /// Messages, and the id that the client gave their request.
    Whole(RpcBody, Option<Arc<String>>),
    /// Input that cannot be served, with the error.
    Broken(Option<RequestId>, RpcError),
}

/// Why a connection has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The client has closed its input.
    Finished,
    /// The client no longer reads the output.
    ClientNotReading,
    /// The server stops.
    Stopped,
    /// The access of the agent has ended.
    AccessEnded(AccessEnd),
    /// The agent reaches other things than before.
    ReachChanged,
}

/// A connection.
pub struct DuplexConnection {
    endpoint: Arc<Endpoint>,
    sender: CallContext,
    _place: HeldResource,
    lines: mpsc::Sender<ClientLine>,
    under_way: InFlight,
    /// Set by `initialize`.
    session: Option<Arc<Session>>,
    is_initialized: bool,
    leaving: Arc<AtomicBool>,
    calls: JoinSet<()>,
    streams: JoinSet<()>,
}

impl DuplexConnection {
    /// Opens a connection with this client, and returns the receiver of the lines to write. The connection counts
    /// as one of the agent's streams.
    pub fn open(
        endpoint: &Arc<Endpoint>,
        sender: CallContext,
    ) -> Result<(Self, mpsc::Receiver<ClientLine>), Refusal> {
        let place = endpoint.stream(&sender)?;
        let (lines, written) = mpsc::channel(QUEUED);
        let link = Self {
            endpoint: endpoint.clone(),
            sender,
            _place: place,
            lines,
            under_way: InFlight::new(MAX_IN_FLIGHT),
            session: None,
            is_initialized: false,
            leaving: Arc::default(),
            calls: JoinSet::new(),
            streams: JoinSet::new(),
        };
        Ok((link, written))
    }

    /// Serves the client until its input ends, it no longer reads, its access ends, or the server stops. Dropping
    /// the future ends everything in progress, as far as its class allows.
    pub async fn run(mut self, mut arrivals: mpsc::Receiver<ClientInput>) -> DisconnectReason {
        let (endpoint, sender, lines) = (
            self.endpoint.clone(),
            self.sender.clone(),
            self.lines.clone(),
        );
        let mut over = pin!(wait_for_disconnect(&endpoint, &sender, &lines));
        let ended = loop {
            let arrival = tokio::select! {
                biased;
                ended = &mut over => break ended,
                Some(_) = self.calls.join_next() => continue,
                Some(_) = self.streams.join_next() => continue,
                arrival = arrivals.recv() => arrival,
            };
            let Some(arrival) = arrival else {
                self.leaving.store(true, Ordering::Relaxed);
                break DisconnectReason::Finished;
            };
            let Some(said) = self.take(arrival).await else {
                continue;
            };
            // If the client does not read its answers, its input is not read either.
            tokio::select! {
                biased;
                ended = &mut over => break ended,
                _ = lines.send(ClientLine::new(said)) => {}
            }
        };
        if ended != DisconnectReason::ClientNotReading {
            tokio::select! {
                () = lines.closed() => {}
                _ = tokio::time::timeout(GRACE, self.wait_for_calls(&ended)) => {}
            }
        }
        ended
    }

    /// Waits for the calls in progress, and also for the streams if the server ends them.
    async fn wait_for_calls(&mut self, why: &DisconnectReason) {
        while self.calls.join_next().await.is_some() {}
        while *why != DisconnectReason::Finished && self.streams.join_next().await.is_some() {}
    }

    /// Handles an arrival; returns the immediate answer, if there is one.
    async fn take(&mut self, arrival: ClientInput) -> Option<Vec<u8>> {
        // The policy may have changed since the last message.
        match self.endpoint.guard().current(&self.sender.who) {
            Ok(who) => self.sender.who = who,
            Err(end) => return Some(wire::error(None, &running::access_ended(&end))),
        }
        let messages = match arrival {
            ClientInput::Broken(id, error) => return Some(wire::error(id.as_ref(), &error)),
            ClientInput::Whole(messages, client_request) => {
                self.sender.client_request = client_request;
                messages
            }
        };
        match messages {
            RpcBody::Batch(batch) => {
                let refused = self.batch(batch).err()?;
                Some(wire::error(None, &refused))
            }
            RpcBody::Single(RpcMessage::Request(request)) => {
                let id = request.id.clone();
                let answer = self.request(request).await;
                answer.unwrap_or_else(|error| Some(wire::error(Some(&id), &error)))
            }
            RpcBody::Single(RpcMessage::Notification(note)) => {
                self.handle_notification(&note);
                None
            }
            RpcBody::Single(RpcMessage::Response(response)) => {
                let session = self.session.as_ref()?;
                session.deliver(&response.id, response.outcome);
                None
            }
        }
    }

    async fn request(&mut self, request: RpcRequest) -> Result<Option<Vec<u8>>, RpcError> {
        if RequestMeta::claim(&request.params).is_some() {
            return self.stateless(request).map(|()| None);
        }
        match (&self.session, &*request.method) {
            (_, "initialize") => self.initialize(&request).map(Some),
            (Some(session), _) => {
                let session = session.clone();
                self.stateful(&session, request).await
            }
            (None, "ping") => Ok(Some(wire::answer(Some(&request.id), Ok(&json!({}))))),
            // Only the stateless era has these methods: it reports what the request lacks.
            (None, "server/discover" | stateless::LISTEN) => self.stateless(request).map(|()| None),
            (None, _) => Err(RpcError::invalid_request(
                "this connection has no session yet: initialize first, or send requests of 2026-07-28 with \
                 params._meta",
            )),
        }
    }

    /// Starts the session of the connection, which can have only one.
    fn initialize(&mut self, request: &RpcRequest) -> Result<Vec<u8>, RpcError> {
        if self.session.is_some() {
            let words = "this connection already has a session; open another connection for another session";
            return Err(RpcError::invalid_request(words));
        }
        let hello = InitializeRequest::read(request)?;
        let agent = self.sender.who.agent_id().as_str();
        let claims = SessionClaims::new(agent, hello.version, hello.declared_capabilities);
        self.session = Some(Session::of_connection(claims));
        let engine = self.endpoint.engine();
        let instructions = instructions(&engine.catalog, &self.sender.who);
        let result = hello.answer(engine, engine.catalog.capabilities(), instructions);
        Ok(wire::answer(Some(&request.id), Ok(&result)))
    }

    async fn stateful(
        &mut self,
        session: &Arc<Session>,
        request: RpcRequest,
    ) -> Result<Option<Vec<u8>>, RpcError> {
        if let Some(answering) = running::at_once(&self.endpoint, session, &request, &self.sender) {
            return Ok(answering.end.await.map(|end| end.body.into_one()));
        }
        let place = self
            .endpoint
            .call(&self.sender, &request.method, &request.params);
        let place = place.map_err(refusal_error)?;
        let held = self.under_way.begin(&request.id).ok_or_else(in_use)?;
        // A malformed token is refused together with its call.
        let token = progress_token(&request.params).unwrap_or_default();
        let relay = self.relay(
            held,
            ProgressKeepAlive::new(token, self.endpoint.heartbeat()),
        );
        let sender = CallContext {
            accepts_notifications: true,
            ..self.sender.clone()
        };
        let answering = running::start(&self.endpoint, session, request, sender, place);
        self.calls.spawn(relay.run(answering));
        Ok(None)
    }

    fn stateless(&mut self, request: RpcRequest) -> Result<(), RpcError> {
        let meta = stateless::read_meta(&request)?;
        let held = self.under_way.begin(&request.id).ok_or_else(in_use)?;
        if !self.endpoint.engine().serves(&request.method) {
            return Err(RpcError::method_not_found(&request.method));
        }
        let keep_alive =
            ProgressKeepAlive::new(meta.progress_token.clone(), self.endpoint.heartbeat());
        let call = stateless::call(request, meta, &self.sender, true);
        if call.method == stateless::LISTEN {
            let begun = HeldSubscription::begin(&self.endpoint, call);
            let subscription = begun.map_err(refusal_error)??;
            let relay = self.relay(held, ProgressKeepAlive::silent());
            self.streams.spawn(subscription.relay(relay));
        } else {
            let started = stateless::start(&self.endpoint, call);
            let (answering, place) = started.map_err(refusal_error)?;
            let relayed = self.relay(held, keep_alive).run(answering);
            self.calls.spawn(hold_while(place, relayed));
        }
        Ok(())
    }

    fn relay(&self, held: CallInFlight, keep_alive: ProgressKeepAlive) -> ReplyRelay {
        ReplyRelay {
            held,
            lines: self.lines.clone(),
            keep_alive,
            leaving: self.leaving.clone(),
        }
    }

    fn batch(&mut self, batch: Vec<RpcMessage>) -> Result<(), RpcError> {
        if batch.iter().any(RequestMeta::is_claimed_by) {
            let words = "2026-07-28 does not support batches; send one message";
            return Err(RpcError::invalid_request(words));
        }
        let session = self.session.as_ref().ok_or_else(|| {
            RpcError::invalid_request("a batch requires a session of 2025-03-26; initialize first")
        })?;
        let batch = match RequestBatch::start(&self.endpoint, &self.sender, session, batch) {
            Ok(batch) => batch,
            Err(BatchError::Unfit(error)) => return Err(error),
            Err(BatchError::Refused(refusal)) => return Err(refusal_error(refusal)),
        };
        let lines = self.lines.clone();
        self.calls.spawn(async move {
            if let Some(answers) = batch.answers().await {
                let _ = lines.send(ClientLine::new(answers)).await;
            }
        });
        Ok(())
    }

    fn handle_notification(&mut self, note: &IncomingNotification) {
        if let Some(id) = methods::cancels(note) {
            self.under_way.cancel(&id);
        }
        let Some(session) = &self.session else { return };
        methods::handle_notification(session, note);
        if note.method == "notifications/initialized" && !self.is_initialized {
            self.is_initialized = true;
            self.start_listening(session.clone());
        }
    }

    /// Sends the session's notifications on the same connection.
    fn start_listening(&mut self, session: Arc<Session>) {
        let engine = self.endpoint.engine();
        let listener = session.listen(engine, &self.sender);
        let (endpoint, who) = (self.endpoint.clone(), self.sender.who.clone());
        let heard = forward_events(session, listener, self.lines.clone());
        self.streams.spawn(async move {
            tokio::select! {
                () = heard => {}
                _ = endpoint.guard().wait_for_new_reach(&who) => {}
            }
        });
    }
}

impl Drop for DuplexConnection {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.end();
        }
    }
}

/// Waits until the connection can no longer be served.
async fn wait_for_disconnect(
    endpoint: &Endpoint,
    sender: &CallContext,
    lines: &mpsc::Sender<ClientLine>,
) -> DisconnectReason {
    let mut stop = endpoint.engine().stopping();
    tokio::select! {
        () = lines.closed() => DisconnectReason::ClientNotReading,
        _ = stop.wait_for(|stop| *stop) => DisconnectReason::Stopped,
        end = endpoint.guard().wait_for_new_reach(&sender.who) => match end {
            Ok(()) => DisconnectReason::ReachChanged,
            Err(end) => DisconnectReason::AccessEnded(end),
        },
    }
}

/// Holds a value while a future runs.
async fn hold_while(held: impl Send, run: impl Future<Output = ()>) {
    run.await;
    drop(held);
}

fn in_use() -> RpcError {
    RpcError::invalid_request("this id is in use, or too many calls are running")
}

/// There are no HTTP statuses here, so the error alone contains the reason.
pub fn refusal_error(refusal: Refusal) -> RpcError {
    let mut data = json!({ "error": refusal.error });
    if let (Some(after), Some(data)) = (refusal.retry_after_s, data.as_object_mut()) {
        data.insert("retryAfterSeconds".into(), json!(after));
    }
    RpcError::invalid_request(refusal.message).with_data(data)
}
