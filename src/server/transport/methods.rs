//! The methods and notifications that only the stateful revisions have.

use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::sessions::session::Session;
use crate::dispatch::CallContext;
use gatewren_wire::protocol::{
    IncomingNotification, RequestId, RpcError, RpcRequest, error_for_stateful,
};

/// The methods that a session answers itself.
const OWN: [&str; 12] = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    // Methods of the stateless era; a session has other methods for the same purposes, and no extensions.
    "server/discover",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "skills/list",
    "skills/get",
    "resources/directory/read",
];

/// Whether a session answers this method itself.
pub fn is_own(method: &str) -> bool {
    OWN.contains(&method)
}

/// Answers one of these methods. Changes of the session are stored before this returns.
pub async fn answer(
    endpoint: &Endpoint,
    session: &Session,
    sender: &CallContext,
    request: &RpcRequest,
) -> Result<Value, RpcError> {
    match &*request.method {
        "ping" => {}
        "logging/setLevel" => {
            let name = request.params.get("level").and_then(Value::as_str);
            let level = endpoint.engine().log_level(name)?;
            session.set_level(level);
            endpoint.sessions().level_set(session, level).await;
        }
        "resources/subscribe" => subscribe(endpoint, session, sender, request).await?,
        "resources/unsubscribe" => {
            let uri = uri(request)?;
            session.interests.remove(uri);
            endpoint.sessions().note_unsubscribed(session, uri).await;
        }
        other => return Err(RpcError::method_not_found(other)),
    }
    Ok(json!({}))
}

async fn subscribe(
    endpoint: &Endpoint,
    session: &Session,
    sender: &CallContext,
    request: &RpcRequest,
) -> Result<(), RpcError> {
    let uri = uri(request)?;
    let engine = endpoint.engine();
    if engine.catalog.resources().is_none() {
        return Err(RpcError::method_not_found(&request.method));
    }
    if !engine.can_watch(sender, uri) {
        let error = RpcError::resource_not_found(uri);
        return Err(error_for_stateful(&request.method, error));
    }
    let since = engine.since(sender, uri);
    session.interests.add(uri, since)?;
    let sessions = endpoint.sessions();
    sessions.note_subscribed(session, uri, since.number()).await;
    Ok(())
}

fn uri(request: &RpcRequest) -> Result<&str, RpcError> {
    request
        .params
        .get("uri")
        .and_then(Value::as_str)
        .ok_or_else(|| {
            RpcError::invalid_params(format!("{} requires params.uri, a string", request.method))
        })
}

/// Handles a notification; unknown ones are accepted and ignored.
pub fn handle_notification(session: &Session, note: &IncomingNotification) {
    if let Some(id) = cancels(note) {
        session.cancel(&id);
    }
}

/// The request that a notification cancels.
pub fn cancels(note: &IncomingNotification) -> Option<RequestId> {
    let id = note.params.get("requestId")?;
    let cancels = note.method == "notifications/cancelled";
    cancels.then(|| serde_json::from_value(id.clone()).ok())?
}
