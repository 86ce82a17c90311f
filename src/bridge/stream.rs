//! The session's stream for messages that the server starts; reopened whenever it ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};

use super::link::BridgeState;
use super::renew::renew;
use super::request_error::DeliveryStatus;
use super::server::{FIRST_PAUSE, UpstreamResponse};
use super::stateful::LAST_EVENT;

/// The longest pause between two attempts.
pub const LONGEST: Duration = Duration::from_secs(30);

/// Listens until the client disconnects. Returns early if the server offers no such stream.
pub async fn listen(link: Arc<BridgeState>) {
    let mut pause = FIRST_PAUSE;
    let mut last: Option<HeaderValue> = None;
    loop {
        let session = link.session();
        let mut http_request = session.request(Method::GET, Bytes::new(), true);
        if let Some(last) = &last {
            http_request.headers.insert(LAST_EVENT, last.clone());
        }
        match link.server.once(&http_request).await {
            Ok(answer) if answer.is_stream() => {
                pause = forward_events(&link, answer, &mut last).await;
            }
            Ok(answer) if session.is_session_expired(answer.status) => {
                last = None;
                if let Err(failure) = renew(&link, session.number).await {
                    tracing::warn!(why = failure.words, "starting a new session failed");
                    if failure.delivery == DeliveryStatus::Never {
                        return;
                    }
                }
            }
            Ok(answer) if answer.status == StatusCode::METHOD_NOT_ALLOWED && last.is_none() => {
                return;
            }
            // The server or a proxy in front of it is busy, or the server does not know the event
            // id.
            Ok(_) => last = None,
            Err(failure) => {
                tracing::debug!(why = failure.words, "reopening the stream");
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Forwards events to the client. Returns the pause before the stream is reopened.
async fn forward_events(
    link: &BridgeState,
    answer: UpstreamResponse,
    last: &mut Option<HeaderValue>,
) -> Duration {
    let mut pause = FIRST_PAUSE;
    let (mut events, _wire) = answer.events();
    while let Ok(Some(event)) = events.next().await {
        if let Some(id) = event.id.and_then(|id| HeaderValue::from_str(&id).ok()) {
            *last = Some(id);
        }
        pause = event.retry.map_or(pause, |retry| retry.min(LONGEST));
        if !event.data.is_empty() {
            link.output.send(event.data).await;
        }
    }
    pause
}
