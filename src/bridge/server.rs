//! Sends requests over idle or new connections, and retries while the server is unreachable.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, StatusCode};
use tokio::time::Instant;

use super::events::{MAX_MESSAGE, SseReader};
use super::request_error::{DeliveryStatus, UpstreamError};
use gatewren_http_client::{HttpClient, HttpConnection, bearer};
use gatewren_portable::{Secret, lock};

/// The maximum number of idle connections; a further one is closed.
const MAX_FREE: usize = 4;

/// A connection that was idle for longer is closed: the server or a router may have dropped it.
const FREE_FOR: Duration = Duration::from_secs(10);

/// The first pause before a retry; each pause is twice as long as the last, up to the longest.
pub const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// The longest pause of a request that a caller waits for.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The server and the token to access it.
pub struct UpstreamServer {
    client: HttpClient,
    bearer: HeaderValue,
    /// How long a request waits while the server is unreachable before it is answered with an
    /// error.
    wait_limit: Duration,
    free: Mutex<Vec<(Instant, HttpConnection)>>,
}

/// An HTTP request.
pub struct UpstreamRequest {
    /// POST, GET or DELETE.
    pub method: Method,
    /// Headers of this request.
    pub headers: HeaderMap,
    /// A message, or empty.
    pub body: Bytes,
    /// Whether it may be repeated when it is unknown whether the server received it.
    pub repeatable: bool,
}

/// The server's response.
pub struct UpstreamResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    body: Incoming,
    wire: HttpConnection,
}

impl UpstreamServer {
    /// Returns the server, accessed with this token.
    pub fn new(
        client: HttpClient,
        token: &Secret,
        wait_limit: Duration,
    ) -> Result<Self, UpstreamError> {
        let words = "the token contains invalid characters";
        let invalid = || UpstreamError::new(DeliveryStatus::Never, words);
        Ok(Self {
            client,
            bearer: bearer(token).ok_or_else(invalid)?,
            wait_limit,
            free: Mutex::default(),
        })
    }

    /// Sends a request and retries as long as that is useful and safe.
    pub async fn ask(
        &self,
        http_request: &UpstreamRequest,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let until = Instant::now() + self.wait_limit;
        let mut pause = FIRST_PAUSE;
        loop {
            let (failure, wait) = match self.once(http_request).await {
                Ok(answer) => match answer.asks_to_wait() {
                    // The server rejected it before starting it, so it can be repeated.
                    Some(wait) if Instant::now() + wait <= until => (None, wait),
                    _ => return Ok(answer),
                },
                Err(failure) => (Some(failure), pause),
            };
            if let Some(failure) = failure {
                let again = failure.may_retry(http_request.repeatable);
                if !again || Instant::now() + wait > until {
                    return Err(failure);
                }
                tracing::debug!(why = failure.words, "retrying");
            }
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sends a request once.
    pub async fn once(
        &self,
        http_request: &UpstreamRequest,
    ) -> Result<UpstreamResponse, UpstreamError> {
        let mut wire = match self.take_free() {
            Some(wire) => wire,
            None => self.client.connect().await?,
        };
        let mut request = Request::new(http_request.body.clone());
        *request.method_mut() = http_request.method.clone();
        *request.headers_mut() = http_request.headers.clone();
        let headers = request.headers_mut();
        headers.insert(AUTHORIZATION, self.bearer.clone());
        let accept = match http_request.method {
            Method::GET => "text/event-stream",
            _ => "application/json, text/event-stream",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        let (head, body) = wire.ask(request).await?.into_parts();
        Ok(UpstreamResponse {
            status: head.status,
            headers: head.headers,
            body,
            wire,
        })
    }

    /// Returns the whole body of a response; its connection becomes idle.
    pub async fn whole(&self, answer: UpstreamResponse) -> Result<Bytes, UpstreamError> {
        let body = Limited::new(answer.body, MAX_MESSAGE).collect().await;
        let body = body.map_err(|cause| {
            let words = format!("the server's response is incomplete or too large: {cause}");
            UpstreamError::new(DeliveryStatus::Unknown, words)
        })?;
        let mut free = lock(&self.free);
        if free.len() < MAX_FREE {
            free.push((Instant::now(), answer.wire));
        }
        Ok(body.to_bytes())
    }

    fn take_free(&self) -> Option<HttpConnection> {
        let mut free = lock(&self.free);
        while let Some((since, wire)) = free.pop() {
            if since.elapsed() < FREE_FOR && wire.is_free() {
                return Some(wire);
            }
        }
        None
    }
}

impl UpstreamResponse {
    /// Whether it is a stream of events.
    pub fn is_stream(&self) -> bool {
        let media = self.headers.get(CONTENT_TYPE);
        let media = media.and_then(|media| media.to_str().ok());
        media.is_some_and(|media| media.starts_with("text/event-stream"))
    }

    /// Returns its events; the connection ends with them.
    pub fn events(self) -> (SseReader, HttpConnection) {
        (SseReader::of(self.body), self.wire)
    }

    /// Returns the server's `Retry-After` for this request.
    fn asks_to_wait(&self) -> Option<Duration> {
        let busy = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        let after = self.headers.get(RETRY_AFTER)?.to_str().ok()?;
        let seconds: u64 = after.parse().ok()?;
        let wait = Duration::from_secs(seconds).max(FIRST_PAUSE);
        busy.contains(&self.status).then_some(wait)
    }
}
