//! One request on one connection: sends it, and reads the answer up to a limit.

use std::future::poll_fn;
use std::pin::Pin;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::task::JoinHandle;

use super::engine_socket::EngineSocket;
use super::error::{EngineError, engine_words};
use super::kind::EngineKind;

/// The most bytes of an answer's head, and of what is read at once; a longer head is an error.
const BUFFER_BYTES: usize = 64 * 1024;
/// The most bytes of an error's body; a longer one is not shown.
const MAX_REJECTION_BYTES: usize = 64 * 1024;

/// The head of an answer, and the connection that its body comes from.
pub(super) struct EngineResponse {
    kind: EngineKind,
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    _connection: ConnectionTask,
}

/// The task that reads and writes on a connection; dropping it closes the connection.
struct ConnectionTask(JoinHandle<()>);

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer that is an error of the engine.
pub(super) struct Rejection {
    kind: EngineKind,
    status: StatusCode,
    /// The engine's words, which are sanitized; `None` if the answer is not the JSON of the API.
    message: Option<String>,
    /// Podman's short name of the error.
    cause: String,
}

/// The JSON of an error: Docker has the message only.
#[derive(Deserialize)]
struct RejectionBody {
    message: String,
    cause: Option<String>,
}

/// Connects, sends a request, and waits for the head of the answer.
pub(super) async fn exchange(
    kind: EngineKind,
    socket: &EngineSocket,
    request: Request<String>,
) -> Result<EngineResponse, EngineError> {
    let stream = socket.connect(kind).await?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(BUFFER_BYTES);
    let opened = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|cause| broken(kind, &cause))?;
    let task = ConnectionTask(tokio::spawn(async move {
        // Its error is that of the request or of the body, where it is reported.
        let _ = connection.await;
    }));
    let response = sender.send_request(request).await;
    let (head, body) = response.map_err(|cause| broken(kind, &cause))?.into_parts();
    Ok(EngineResponse {
        kind,
        status: head.status,
        headers: head.headers,
        body,
        _connection: task,
    })
}

/// Converts an error of the connection.
fn broken(kind: EngineKind, cause: &hyper::Error) -> EngineError {
    if cause.is_parse() || cause.is_parse_too_large() {
        return EngineError::Unreadable(format!(
            "the answer of {kind} is not HTTP, or its head has more than {BUFFER_BYTES} bytes: {cause}"
        ));
    }
    EngineError::Unavailable(format!(
        "{kind} closed the connection before its answer was complete ({cause}); it may be restarting"
    ))
}

impl EngineResponse {
    /// A header of the answer.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the engine had nothing to do: the container is already in the state that was requested.
    pub(super) fn is_unchanged(&self) -> bool {
        self.status == StatusCode::NOT_MODIFIED
    }

    /// Returns the next part of the body as it arrives; `None` at its end.
    pub(super) async fn next_part(&mut self) -> Result<Option<Bytes>, EngineError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            let frame = frame.transpose();
            match frame.map_err(|cause| broken(self.kind, &cause))? {
                None => return Ok(None),
                Some(frame) => {
                    // Trailers have no meaning here.
                    if let Ok(part) = frame.into_data() {
                        return Ok(Some(part));
                    }
                }
            }
        }
    }

    /// Reads the body whole. One of more than `most` bytes is an error, and no more than that is read.
    pub(super) async fn read_body(mut self, most: usize) -> Result<Vec<u8>, EngineError> {
        let mut whole = Vec::new();
        while let Some(part) = self.next_part().await? {
            if whole.len() + part.len() > most {
                let kind = self.kind;
                return Err(EngineError::Unreadable(format!(
                    "the answer of {kind} has more than {most} bytes; the rest was not read"
                )));
            }
            whole.extend_from_slice(&part);
        }
        Ok(whole)
    }

    /// Separates success from an error of the engine.
    pub(super) async fn into_success(self) -> Result<Result<Self, Rejection>, EngineError> {
        if self.status.is_success() || self.is_unchanged() {
            return Ok(Ok(self));
        }
        let (kind, status) = (self.kind, self.status);
        let body = match self.read_body(MAX_REJECTION_BYTES).await {
            Err(EngineError::Unreadable(_)) => Vec::new(),
            body => body?,
        };
        let body: Option<RejectionBody> = serde_json::from_slice(&body).ok();
        let cause = body.as_ref().and_then(|body| body.cause.clone());
        Ok(Err(Rejection {
            kind,
            status,
            message: body.map(|body| engine_words(&body.message)),
            cause: cause.unwrap_or_default(),
        }))
    }
}

impl Rejection {
    /// Whether the engine has nothing at the path of the request. An answer to HEAD has no message.
    pub(super) fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// Whether the engine does not accept the version in the path, as after an update.
    pub(super) fn is_about_version(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default();
        self.status == StatusCode::BAD_REQUEST && message.starts_with("client version ")
    }

    /// Whether the engine's message has these words.
    pub(super) fn mentions(&self, words: &str) -> bool {
        let message = self.message.as_deref().unwrap_or_default();
        message.contains(words)
    }

    /// Converts it to an error.
    pub(super) fn into_error(self) -> EngineError {
        let (kind, status) = (self.kind, self.status.as_u16());
        if self.is_about_version() {
            let message = self.message.unwrap_or_default();
            return EngineError::TooOld(format!(
                "{kind} refuses this client's version of the API: {message}; update the older of both"
            ));
        }
        let Some(message) = self.message else {
            return EngineError::Refused(format!(
                "{kind} answered with HTTP status {status} and no message; this version of it may not have the function"
            ));
        };
        // Docker answers an unknown path in the form of a missing container, Podman without JSON.
        let is_missing = self.status == StatusCode::NOT_FOUND && message != "page not found";
        if is_missing {
            return EngineError::NotFound(format!("{kind} does not find it: {message}"));
        }
        // Podman answers 500 for each wrong state, Docker for some.
        let is_wrong_state = self.cause == "container state improper";
        if self.status == StatusCode::CONFLICT || is_wrong_state {
            return EngineError::Conflict(format!(
                "{kind} does not do this in the container's present state: {message}"
            ));
        }
        EngineError::Refused(format!("{kind} refused ({status}): {message}"))
    }
}
