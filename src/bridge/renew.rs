//! Renews a session that the server no longer knows; the client only learns that lists may have changed.

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{ForwardOutcome, ResponseRoute, said};
use super::link::{BridgeSession, BridgeState, SessionSetup};
use super::peek::PeekedMessage;
use super::request_error::{DeliveryStatus, UpstreamError};
use gatewren_wire::protocol::RequestId;

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
    let kept = link.kept().clone();
    let Some((id, hello)) = kept.hello.clone() else {
        let words = "the server does not know this session, and the client did not initialize one";
        return Err(UpstreamError::new(DeliveryStatus::Never, words));
    };
    tracing::info!("the server has ended the session; starting a new one");
    let (headers, answer) = greet(link, &id, hello).await?;
    let agreed = agreed(&answer).ok_or_else(|| {
        let words = "the server did not start a new session; restart the client";
        UpstreamError::new(DeliveryStatus::Never, words)
    })?;
    if old
        .version
        .as_deref()
        .is_some_and(|old| old != agreed.version)
    {
        let words = "the server now uses another MCP version; restart the client";
        return Err(UpstreamError::new(DeliveryStatus::Never, words));
    }
    link.begin_session(&headers);
    link.agree(agreed.version);
    tell_server(link, &kept).await?;
    tell_client(link, &kept, &agreed.capabilities).await;
    Ok(())
}

/// Repeats the client's `initialize`. Returns the headers and the response.
async fn greet(
    link: &BridgeState,
    id: &RequestId,
    hello: Bytes,
) -> Result<(HeaderMap, Vec<u8>), UpstreamError> {
    let asking = BridgeSession::default().asking(Method::POST, hello, true);
    let answer = link.server.ask(&asking).await?;
    let headers = answer.headers.clone();
    let way = ResponseRoute {
        server: &link.server,
        output: None,
        keeps: true,
    };
    match way.carry(answer, id).await {
        ForwardOutcome::Answered(answer) => Ok((headers, answer.unwrap_or_default())),
        ForwardOutcome::Cut { why, .. } => Err(why),
    }
}

fn agreed(answer: &[u8]) -> Option<Hello> {
    let result = PeekedMessage::at(answer)?.result?;
    serde_json::from_str(result.get()).ok()
}

/// Returns the protocol version in a response to `initialize`.
pub fn version_in(answer: &[u8]) -> Option<String> {
    agreed(answer).map(|hello| hello.version)
}

/// Repeats the client's log level and subscriptions in the new session.
async fn tell_server(link: &BridgeState, kept: &SessionSetup) -> Result<(), UpstreamError> {
    let mut messages = vec![json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })];
    let mut ask = |method: &str, params: Value| {
        let id = format!("gatewren-bridge-{}", messages.len());
        messages.push(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    };
    if let Some(level) = kept.level {
        ask("logging/setLevel", json!({ "level": level }));
    }
    for uri in &kept.uris {
        ask("resources/subscribe", json!({ "uri": uri }));
    }
    for message in messages {
        let body = Bytes::from(message.to_string());
        let asking = link.session().asking(Method::POST, body, true);
        let answer = link.server.ask(&asking).await?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = link.server.whole(answer).await?;
        if !status.is_success() {
            // Not an error: a subscribed resource may have been removed in the meantime.
            let words = said(&headers, status.as_str(), &body);
            tracing::warn!(words, "the new session rejected a setting of the old one");
        }
    }
    Ok(())
}

/// Notifies the client of what may have changed while there was no session.
async fn tell_client(link: &BridgeState, kept: &SessionSetup, capabilities: &Value) {
    for list in ["tools", "prompts", "resources"] {
        let tells = capabilities.pointer(&format!("/{list}/listChanged"));
        if tells == Some(&Value::Bool(true)) {
            let method = format!("notifications/{list}/list_changed");
            let note = json!({ "jsonrpc": "2.0", "method": method });
            link.output.tell(&note).await;
        }
    }
    for uri in &kept.uris {
        let method = "notifications/resources/updated";
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": { "uri": uri } });
        link.output.tell(&note).await;
    }
}
