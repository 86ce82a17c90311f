//! Protocol 2025-11-25 and earlier: requests in a session, whose streams are resumed after a break.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use super::answer::{ForwardOutcome, ResponseRoute, client_error, is_repeatable, rejection_text};
use super::link::{BridgeSession, BridgeState, MAX_URIS};
use super::renew::{renew, version_in};
use super::request_error::{DeliveryStatus, UpstreamError};
use super::server::{FIRST_PAUSE, UpstreamResponse};
use gatewren_protocol::{LogSeverity, RpcRequest};

/// The header that names the last event when a stream is resumed.
pub const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How often a stream is resumed without a new event before the bridge gives up.
const MAX_RESUMED: u32 = 8;

/// Forwards a request and its response.
pub async fn forward(link: Arc<BridgeState>, request: RpcRequest, body: Bytes) {
    let repeatable = is_repeatable(&request.method);
    if let Err(failure) = try_forward(&link, &request, &body, repeatable).await {
        let error = client_error(&failure, repeatable);
        link.output.reject(Some(&request.id), &error).await;
    }
}

async fn try_forward(
    link: &BridgeState,
    request: &RpcRequest,
    body: &Bytes,
    repeatable: bool,
) -> Result<(), UpstreamError> {
    let begins = request.method == "initialize";
    let mut tries = 0;
    loop {
        tries += 1;
        let session = if begins {
            BridgeSession::default()
        } else {
            link.session()
        };
        let http_request = session.request(Method::POST, body.clone(), repeatable);
        let answer = link.server.ask(&http_request).await?;
        if session.is_session_expired(answer.status) && tries == 1 {
            renew(link, session.number).await?;
            continue;
        }
        let headers = answer.headers.clone();
        if begins && answer.status.is_success() {
            link.begin_session(&headers);
        }
        match deliver(link, &session, request, answer).await {
            Ok(answer) if begins => {
                let answer = answer.unwrap_or_default();
                if let Some(version) = version_in(&answer) {
                    link.set_version(version);
                }
                link.setup().hello = Some((request.id.clone(), body.clone()));
                // Only now: the client's next message belongs to this session.
                link.output.send(answer).await;
                return Ok(());
            }
            Ok(_) => {
                update_setup(link, request);
                return Ok(());
            }
            Err(why) if tries > 1 || !why.may_retry(repeatable) => return Err(why),
            Err(_) => {}
        }
    }
}

/// Delivers the response, over several connections if needed.
async fn deliver(
    link: &BridgeState,
    session: &BridgeSession,
    request: &RpcRequest,
    answer: UpstreamResponse,
) -> Result<Option<Vec<u8>>, UpstreamError> {
    let begins = request.method == "initialize";
    let way = ResponseRoute {
        server: &link.server,
        output: (!begins).then_some(&link.output),
        keeps: begins,
    };
    let mut answer = answer;
    let mut seen: Option<String> = None;
    let mut resumed = 0;
    loop {
        let (last, why) = match way.forward(answer, &request.id).await {
            ForwardOutcome::Answered(message) => return Ok(message),
            ForwardOutcome::Cut { last, why } => (last, why),
        };
        if last.is_some() && last != seen {
            resumed = 0;
            seen = last;
        }
        let Some(last) = seen.as_deref().filter(|_| resumed < MAX_RESUMED) else {
            return Err(why);
        };
        resumed += 1;
        tokio::time::sleep(FIRST_PAUSE * resumed).await;
        let mut http_request = session.request(Method::GET, Bytes::new(), true);
        let Ok(last) = HeaderValue::from_str(last) else {
            return Err(why);
        };
        http_request.headers.insert(LAST_EVENT, last);
        answer = link.server.ask(&http_request).await?;
        if !answer.is_stream() {
            // The server no longer has the stream, and with it the call. The call was started; its
            // result is unknown.
            return Err(UpstreamError::new(DeliveryStatus::Unknown, why.words));
        }
    }
}

/// Remembers what a new session must be sent again.
fn update_setup(link: &BridgeState, request: &RpcRequest) {
    let text = |name: &str| request.params.get(name).and_then(Value::as_str);
    let mut setup = link.setup();
    match &*request.method {
        "resources/subscribe" => {
            let uri = text("uri").filter(|_| setup.uris.len() < MAX_URIS);
            setup.uris.extend(uri.map(str::to_owned));
        }
        "resources/unsubscribe" => {
            setup.uris.remove(text("uri").unwrap_or_default());
        }
        "logging/setLevel" => {
            let level = request.params.get("level").cloned();
            let level: Option<LogSeverity> =
                level.and_then(|level| serde_json::from_value(level).ok());
            setup.level = level.or(setup.level);
        }
        _ => {}
    }
}

/// Forwards a message that needs no response: a notification, or the client's response to the
/// server.
pub async fn forward_notification(link: &BridgeState, body: Bytes) {
    let begun = Instant::now();
    for _ in 0..2 {
        let session = link.session();
        // Repeatable: receiving such a message twice is harmless.
        let http_request = session.request(Method::POST, body.clone(), true);
        let answer = match link.server.ask(&http_request).await {
            Ok(answer) => answer,
            Err(failure) => {
                return tracing::warn!(why = failure.words, "forwarding a message failed");
            }
        };
        if session.is_session_expired(answer.status) {
            match renew(link, session.number).await {
                Ok(()) => continue,
                Err(failure) => {
                    return tracing::warn!(why = failure.words, "forwarding a message failed");
                }
            }
        }
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = link.server.whole(answer).await.unwrap_or_default();
        if !matches!(status, StatusCode::ACCEPTED | StatusCode::OK) {
            let words = rejection_text(&headers, status.as_str(), &body);
            tracing::warn!(words, took = ?begun.elapsed(), "the server rejected a message");
        }
        return;
    }
}
