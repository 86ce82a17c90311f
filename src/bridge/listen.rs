//! `subscriptions/listen` (2026-07-28): reopens the stream and notifies the client that anything may have changed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{client_error, rejection_text};
use super::link::BridgeState;
use super::peek::PeekedMessage;
use super::request_error::{DeliveryStatus, UpstreamError};
use super::server::{FIRST_PAUSE, UpstreamRequest, UpstreamResponse};
use super::stream::LONGEST;
use gatewren_protocol::{RequestId, RpcRequest};

/// The notification that states what a subscription covers.
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// How a connection of a subscription ended.
enum End {
    /// It may be reopened.
    Open,
    /// The server rejected it.
    Refused(UpstreamError),
    /// The server responded with an error.
    Answered,
}

/// Listens until the client cancels it or the server rejects it.
pub async fn listen(link: Arc<BridgeState>, request: RpcRequest, http_request: UpstreamRequest) {
    let mut pause = FIRST_PAUSE;
    let mut acknowledged = false;
    loop {
        let answer = if acknowledged {
            link.server.once(&http_request).await
        } else {
            // The client waits for the acknowledgement.
            link.server.ask(&http_request).await
        };
        let end = match answer {
            Ok(answer) if answer.is_stream() => {
                pause = FIRST_PAUSE;
                forward_events(&link, &request.id, answer, &mut acknowledged).await
            }
            Ok(answer) => reject(&link, &request.id, answer).await,
            Err(failure) if acknowledged && failure.delivery != DeliveryStatus::Never => End::Open,
            Err(failure) => End::Refused(failure),
        };
        match end {
            End::Open => {}
            End::Answered => return,
            End::Refused(failure) => {
                let error = client_error(&failure, true);
                return link.output.reject(Some(&request.id), &error).await;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST);
    }
}

/// Forwards messages. A second acknowledgement is not forwarded: the client is notified of what may
/// have changed instead. The response that a stopping server sends is not forwarded either: the
/// subscription is reopened.
async fn forward_events(
    link: &BridgeState,
    id: &RequestId,
    answer: UpstreamResponse,
    acknowledged: &mut bool,
) -> End {
    let (mut events, _wire) = answer.events();
    while let Ok(Some(event)) = events.next().await {
        let Some(peek) = PeekedMessage::at(&event.data) else {
            continue;
        };
        if peek.answers(id) {
            if peek.error.is_none() {
                return End::Open;
            }
            link.output.send(event.data).await;
            return End::Answered;
        }
        let again = *acknowledged && peek.method.as_deref() == Some(ACKNOWLEDGED);
        *acknowledged |= peek.method.as_deref() == Some(ACKNOWLEDGED);
        if again {
            let granted = peek.params.map(|params| serde_json::from_str(params.get()));
            notify(link, id, granted.and_then(Result::ok).unwrap_or_default()).await;
        } else {
            link.output.send(event.data).await;
        }
    }
    End::Open
}

/// Notifies the client: what it subscribed to may have changed while the stream was closed.
async fn notify(link: &BridgeState, id: &RequestId, granted: Value) {
    let granted = granted.get("notifications").cloned().unwrap_or_default();
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
    for list in ["tools", "prompts", "resources"] {
        if granted.get(format!("{list}ListChanged")) == Some(&Value::Bool(true)) {
            let method = format!("notifications/{list}/list_changed");
            let note = json!({ "jsonrpc": "2.0", "method": method, "params": { "_meta": meta } });
            link.output.notify(&note).await;
        }
    }
    let uris = granted
        .get("resourceSubscriptions")
        .and_then(Value::as_array);
    for uri in uris.into_iter().flatten() {
        let method = "notifications/resources/updated";
        let params = json!({ "uri": uri, "_meta": meta });
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        link.output.notify(&note).await;
    }
}

async fn reject(link: &BridgeState, id: &RequestId, answer: UpstreamResponse) -> End {
    let (status, headers) = (answer.status, answer.headers.clone());
    let Ok(body) = link.server.whole(answer).await else {
        return End::Open;
    };
    if PeekedMessage::at(&body).is_some_and(|peek| peek.answers(id)) {
        link.output.send(body.to_vec()).await;
        return End::Answered;
    }
    if status.is_server_error() || status.as_u16() == 429 {
        return End::Open;
    }
    let words = rejection_text(&headers, status.as_str(), &body);
    End::Refused(UpstreamError::new(DeliveryStatus::Never, words))
}
