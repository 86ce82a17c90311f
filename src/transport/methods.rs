//! The methods and notifications that only the stateful revisions have.

use serde_json::{Value, json};

use super::{endpoint::Endpoint, session::Session};
use crate::protocol::{Id, IncomingNotification, Request, RpcError, error_for_stateful};

/// The methods that only this era has.
pub fn at_once(
    endpoint: &Endpoint,
    session: &Session,
    request: &Request,
) -> Option<Result<Value, RpcError>> {
    let engine = endpoint.engine();
    match request.method.as_str() {
        "ping" => Some(Ok(json!({}))),
        "logging/setLevel" => {
            let level = engine.log_level(request.params.get("level").and_then(Value::as_str));
            Some(level.map(|level| {
                session.set_level(level);
                json!({})
            }))
        }
        "resources/subscribe" => Some(subscribe(endpoint, session, request)),
        "resources/unsubscribe" => Some(uri(request).map(|uri| {
            session.interests.remove(uri);
            json!({})
        })),
        // The stateless era's own; a session has other ways to the same.
        "server/discover"
        | "subscriptions/listen"
        | "tasks/get"
        | "tasks/update"
        | "tasks/cancel" => Some(Err(RpcError::method_not_found(&request.method))),
        _ => None,
    }
}

fn subscribe(endpoint: &Endpoint, session: &Session, request: &Request) -> Result<Value, RpcError> {
    let uri = uri(request)?;
    let engine = endpoint.engine();
    let source = engine
        .catalog
        .resources()
        .ok_or_else(|| RpcError::method_not_found(&request.method))?;
    if !source.can_watch(uri) {
        let error = RpcError::resource_not_found(uri);
        return Err(error_for_stateful(&request.method, error));
    }
    session.interests.add(uri, engine.revision())?;
    Ok(json!({}))
}

fn uri(request: &Request) -> Result<&str, RpcError> {
    request
        .params
        .get("uri")
        .and_then(Value::as_str)
        .ok_or_else(|| {
            RpcError::invalid_params(format!("{} needs params.uri, a string", request.method))
        })
}

/// Acts on a notification; one that means nothing here is accepted all the same.
pub fn notified(session: &Session, note: &IncomingNotification) {
    if note.method == "notifications/cancelled"
        && let Some(id) = note.params.get("requestId")
        && let Ok(id) = serde_json::from_value::<Id>(id.clone())
    {
        session.cancel(&id);
    }
}
