//! Reads the client's messages, forwards each one, and ends with the client.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::link::{BridgeState, ForwardedRequest};
use super::output::{ClientOutput, write_all};
use super::server::UpstreamServer;
use super::{listen, stateful, stateless, stream};
use gatewren_portable::{LineReader, LineTooLong};
use gatewren_protocol::{
    IncomingNotification, RequestId, RequestMeta, RpcBody, RpcError, RpcMessage, RpcRequest, read,
};

/// The longest message of the client; a longer one is answered with an error.
const LONGEST: usize = 32 << 20;

/// Queue length for messages that were read. When it is full, the client is not read.
const QUEUED: usize = 8;

/// The maximum number of requests in flight; a further one is answered with an error.
const MAX_UNDER_WAY: usize = 256;

/// How long requests in flight may take to finish after the client has closed its side.
const DRAIN: Duration = Duration::from_secs(5);

/// The timeout for ending the session, and for writing the last lines.
const FAREWELL: Duration = Duration::from_secs(2);

type Line = Result<Vec<u8>, LineTooLong>;

/// Serves one client until it closes its side.
pub async fn run(
    server: UpstreamServer,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) {
    let (client_output, lines) = ClientOutput::new();
    let writing = tokio::spawn(write_all(output, lines));
    let (sender, mut arrivals) = mpsc::channel(QUEUED);
    let reading = tokio::spawn(read_all(input, sender));
    let stop_reading = reading.abort_handle();
    let drained = async {
        let _ = reading.await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::pin!(drained);
    let mut bridge = Bridge {
        link: Arc::new(BridgeState::new(server, client_output.clone())),
        greeting: JoinSet::new(),
        requests: JoinSet::new(),
        streams: JoinSet::new(),
        listens: false,
    };
    loop {
        tokio::select! {
            line = arrivals.recv(), if bridge.greeting.is_empty() => match line {
                Some(line) => bridge.take(line).await,
                None => break,
            },
            Some(_) = bridge.greeting.join_next() => {}
            () = &mut drained, if !bridge.greeting.is_empty() => break,
            Some(_) = bridge.requests.join_next() => {}
            Some(_) = bridge.streams.join_next() => {}
            () = client_output.closed() => break,
        }
    }
    stop_reading.abort();
    bridge.end().await;
    drop((bridge, client_output));
    let _ = tokio::time::timeout(FAREWELL, writing).await;
}

async fn read_all(input: impl AsyncRead + Unpin, sender: mpsc::Sender<Line>) {
    let mut lines = LineReader::new(BufReader::new(input), LONGEST);
    loop {
        let line = match lines.next().await {
            Ok(Some(Ok(line))) if line.trim_ascii().is_empty() => continue,
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(cause) => return tracing::debug!(%cause, "reading from the client failed"),
        };
        if sender.send(line).await.is_err() {
            return;
        }
    }
}

/// Forwards the client's messages.
struct Bridge {
    link: Arc<BridgeState>,
    /// `initialize` under way. Messages behind it wait for its answer: they belong to the session that it begins, and
    /// some clients do not wait.
    greeting: JoinSet<()>,
    /// Requests that the client waits for.
    requests: JoinSet<()>,
    /// Long-lived streams.
    streams: JoinSet<()>,
    /// Whether the session's own stream is open.
    listens: bool,
}

impl Bridge {
    async fn take(&mut self, line: Line) {
        let Ok(line) = line else {
            let words = format!("a message may have at most {LONGEST} bytes");
            return self.reject(None, RpcError::invalid_request(words)).await;
        };
        let line = Bytes::from(line);
        match read(&line) {
            Ok(RpcBody::Single(RpcMessage::Request(request))) => self.request(request, line).await,
            Ok(RpcBody::Single(RpcMessage::Notification(note))) => self.note(&note, line).await,
            Ok(RpcBody::Single(RpcMessage::Response(_))) => self.post(line),
            Ok(RpcBody::Batch(_)) => {
                let words = "batches are not supported; send one message a line";
                self.reject(None, RpcError::invalid_request(words)).await;
            }
            Err((id, error)) => self.reject(id.as_ref(), error).await,
        }
    }

    async fn reject(&self, id: Option<&RequestId>, error: RpcError) {
        self.link.output.reject(id, &error).await;
    }

    async fn request(&mut self, request: RpcRequest, body: Bytes) {
        let id = request.id.clone();
        let link = self.link.clone();
        if self.requests.len() + self.streams.len() >= MAX_UNDER_WAY {
            let words =
                format!("too many requests: {MAX_UNDER_WAY} are in progress; wait for one to end");
            return link.output.fail(&id, &words).await;
        }
        if link.has(&id) {
            let words = "duplicate id: a request with this id is in progress";
            return self.reject(None, RpcError::invalid_request(words)).await;
        }
        let version = RequestMeta::claim(&request.params).and_then(Value::as_str);
        let version = version.map(str::to_owned);
        // `initialize` cannot be cancelled.
        let may_end = request.method != "initialize";
        let listens = request.method == "subscriptions/listen";
        let (done, shared) = (id.clone(), link.clone());
        let carrier = match &version {
            None if !may_end => self
                .greeting
                .spawn(stateful::forward(shared, request, body)),
            None => self.requests.spawn(async move {
                stateful::forward(shared.clone(), request, body).await;
                shared.remove_request(&done);
            }),
            Some(version) => {
                let http_request = stateless::make_request(&link, &request, version, body);
                if listens {
                    self.streams.spawn(async move {
                        listen::listen(shared.clone(), request, http_request).await;
                        shared.remove_request(&done);
                    })
                } else {
                    self.requests.spawn(async move {
                        stateless::forward(shared.clone(), request, http_request).await;
                        shared.remove_request(&done);
                    })
                }
            }
        };
        if may_end {
            let alone = version.is_some();
            link.add_request(id, ForwardedRequest { alone, carrier });
        }
    }

    async fn note(&mut self, note: &IncomingNotification, line: Bytes) {
        match &*note.method {
            "notifications/cancelled" => {
                let id = note.params.get("requestId").cloned();
                let id: Option<RequestId> = id.and_then(|id| serde_json::from_value(id).ok());
                match id.and_then(|id| self.link.remove_request(&id)) {
                    // Closing its stream tells the server that it was cancelled.
                    Some(ForwardedRequest { alone, carrier }) if alone => carrier.abort(),
                    Some(ForwardedRequest { carrier, .. }) => {
                        // The server gets the notification. The client gets nothing more for this
                        // request, not even an error about the ended stream.
                        carrier.abort();
                        self.post(line);
                    }
                    None => self.post(line),
                }
            }
            "notifications/initialized" => {
                // Forwarded before the next message, which belongs to an initialized session.
                stateful::forward_notification(&self.link, line).await;
                if !self.listens {
                    self.listens = true;
                    self.streams.spawn(stream::listen(self.link.clone()));
                }
            }
            _ => self.post(line),
        }
    }

    /// Forwards a message that needs no response, if there is a session.
    fn post(&mut self, body: Bytes) {
        let link = self.link.clone();
        if link.session().version.is_some() {
            self.requests
                .spawn(async move { stateful::forward_notification(&link, body).await });
        }
    }

    /// Waits for the requests in flight, then ends the session.
    async fn end(&mut self) {
        let drained = async { while self.requests.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN, drained).await;
        self.greeting.shutdown().await;
        self.requests.shutdown().await;
        self.streams.shutdown().await;
        let session = self.link.session();
        if session.id.is_some() {
            let http_request = session.request(Method::DELETE, Bytes::new(), false);
            let _ = tokio::time::timeout(FAREWELL, self.link.server.once(&http_request)).await;
        }
    }
}
