//! Renews a session that the server no longer knows; the client only learns that lists may have changed.

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ForwardOutcome, ResponseRoute, rejection_text};
use super::link::{BridgeSession, BridgeState, SessionSetup};
use super::peek::PeekedMessage;
use super::request_error::{DeliveryStatus, UpstreamError};
use gatewren_protocol::RequestId;

/// The parts of the `initialize` result that the bridge needs.
#[derive(Deserialize)]
struct Hello {
    #[serde(rename = "protocolVersion")]
    version: String,
    #[serde(default)]
    capabilities: Value,
}

/// Replaces the session with this number by a new one, unless another task has already done so.
pub async fn renew(link: &BridgeState, number: u64) -> Result<(), UpstreamError> {
    let _one = link.renewing.lock().await;
    let old = link.session();
    if old.number != number {
        return Ok(());
    }
    let setup = link.setup().clone();
    let Some((id, hello)) = setup.hello.clone() else {
        let words = "the server does not know this session, and the client did not initialize one";
        return Err(UpstreamError::new(DeliveryStatus::Never, words));
    };
    tracing::info!("the server has ended the session; starting a new one");
    let (headers, answer) = greet(link, &id, hello).await?;
    let initialized = parse_hello(&answer).ok_or_else(|| {
        let words = "the server did not start a new session; restart the client";
        UpstreamError::new(DeliveryStatus::Never, words)
    })?;
    if old
        .version
        .as_deref()
        .is_some_and(|old| old != initialized.version)
    {
        let words = "the server now uses another MCP version; restart the client";
        return Err(UpstreamError::new(DeliveryStatus::Never, words));
    }
    link.begin_session(&headers);
    link.set_version(initialized.version);
    restore_session(link, &setup).await?;
    notify_client(link, &setup, &initialized.capabilities).await;
    Ok(())
}

/// Repeats the client's `initialize`. Returns the headers and the response.
async fn greet(
    link: &BridgeState,
    id: &RequestId,
    hello: Bytes,
) -> Result<(HeaderMap, Vec<u8>), UpstreamError> {
    let http_request = BridgeSession::default().request(Method::POST, hello, true);
    let answer = link.server.ask(&http_request).await?;
    let headers = answer.headers.clone();
    let way = ResponseRoute {
        server: &link.server,
        output: None,
        keeps: true,
    };
    match way.forward(answer, id).await {
        ForwardOutcome::Answered(answer) => Ok((headers, answer.unwrap_or_default())),
        ForwardOutcome::Cut { why, .. } => Err(why),
    }
}

fn parse_hello(answer: &[u8]) -> Option<Hello> {
    let result = PeekedMessage::at(answer)?.result?;
    serde_json::from_str(result.get()).ok()
}

/// Returns the protocol version in a response to `initialize`.
pub fn version_in(answer: &[u8]) -> Option<String> {
    parse_hello(answer).map(|hello| hello.version)
}

/// Repeats the client's log level and subscriptions in the new session.
async fn restore_session(link: &BridgeState, setup: &SessionSetup) -> Result<(), UpstreamError> {
    let mut messages = vec![json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })];
    let mut ask = |method: &str, params: Value| {
        let id = format!("gatewren-bridge-{}", messages.len());
        messages.push(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    };
    if let Some(level) = setup.level {
        ask("logging/setLevel", json!({ "level": level }));
    }
    for uri in &setup.uris {
        ask("resources/subscribe", json!({ "uri": uri }));
    }
    for message in messages {
        let body = Bytes::from(message.to_string());
        let http_request = link.session().request(Method::POST, body, true);
        let answer = link.server.ask(&http_request).await?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = link.server.whole(answer).await?;
        if !status.is_success() {
            // Not an error: a subscribed resource may have been removed in the meantime.
            let words = rejection_text(&headers, status.as_str(), &body);
            tracing::warn!(words, "the new session rejected a setting of the old one");
        }
    }
    Ok(())
}

/// Notifies the client of what may have changed while there was no session.
async fn notify_client(link: &BridgeState, setup: &SessionSetup, capabilities: &Value) {
    for list in ["tools", "prompts", "resources"] {
        let tells = capabilities.pointer(&format!("/{list}/listChanged"));
        if tells == Some(&Value::Bool(true)) {
            let method = format!("notifications/{list}/list_changed");
            let note = json!({ "jsonrpc": "2.0", "method": method });
            link.output.notify(&note).await;
        }
    }
    for uri in &setup.uris {
        let method = "notifications/resources/updated";
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": { "uri": uri } });
        link.output.notify(&note).await;
    }
}
