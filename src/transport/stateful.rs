//! 2025-03-26 to 2025-11-25: sessions, as an adapter over the stateless core.

use std::sync::Arc;

use hyper::header::HeaderValue;
use hyper::{Response, StatusCode};
use serde_json::{Map, Value, json};

use super::{
    batch,
    endpoint::{Endpoint, refuse},
    headers,
    running::start,
    session::Session,
    stream::{Accepts, respond},
    wire,
};
use crate::guard::Admitted;
use crate::http::{Body, empty, json as json_response};
use crate::protocol::{
    Id, IncomingNotification, Message, Request, RpcError, Version, error_for_stateful,
};

/// The session's header.
pub const SESSION: &str = "mcp-session-id";

/// Answers one message of the stateful era.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    message: Message,
) -> Response<Body> {
    if let Err(response) = check_version(&admitted) {
        return response;
    }
    if let Message::Request(request) = &message
        && request.method == "initialize"
    {
        return initialize(endpoint, &admitted, request);
    }
    let session = match find(endpoint, &admitted) {
        Ok(session) => session,
        Err(response) => return response,
    };
    match message {
        Message::Request(request) => serve(endpoint, admitted, &session, request).await,
        Message::Notification(note) => {
            notified(&session, &note);
            empty(StatusCode::ACCEPTED)
        }
        Message::Response(response) => {
            session.deliver(&response.id, response.outcome);
            empty(StatusCode::ACCEPTED)
        }
    }
}

/// Answers several at once, where the session's revision allows it.
pub async fn answer_batch(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    batch: Vec<Message>,
) -> Response<Body> {
    if let Err(response) = check_version(&admitted) {
        return response;
    }
    match find(endpoint, &admitted) {
        Err(response) => response,
        Ok(session) if session.claims.version() != Version::V2025_03_26 => {
            let error = RpcError::invalid_request(
                "only sessions of 2025-03-26 take batches; send one message",
            );
            refuse(StatusCode::BAD_REQUEST, None, &error)
        }
        Ok(session) => batch::answer(endpoint, admitted, &session, batch).await,
    }
}

/// DELETE: ends the session with everything that it has under way.
pub async fn end_session(endpoint: &Arc<Endpoint>, admitted: &Admitted) -> Response<Body> {
    match find(endpoint, admitted) {
        Err(response) => response,
        Ok(session) => {
            endpoint.sessions().end(&session).await;
            empty(StatusCode::NO_CONTENT)
        }
    }
}

/// The session that a request names, or the response that says why there is none.
pub fn find(endpoint: &Endpoint, admitted: &Admitted) -> Result<Arc<Session>, Response<Body>> {
    let missing = || {
        let error =
            RpcError::invalid_request("the header Mcp-Session-Id is missing; initialize gives one");
        refuse(StatusCode::BAD_REQUEST, None, &error)
    };
    let id = headers::single(&admitted.head().headers, SESSION).map_err(|_| missing())?;
    endpoint
        .sessions()
        .find(id.ok_or_else(missing)?, admitted.who().agent_id().as_str())
        .ok_or_else(|| {
            let error = RpcError::invalid_request(
                "there is no such session, or it has ended; initialize again",
            );
            refuse(StatusCode::NOT_FOUND, None, &error)
        })
}

/// A version header of a stateful request names a stateful revision, or is absent.
fn check_version(admitted: &Admitted) -> Result<(), Response<Body>> {
    /// Before Streamable HTTP, but clients that fall back name it.
    const OLDEST_NAMED: &str = "2024-11-05";
    let named = headers::single(&admitted.head().headers, headers::VERSION)
        .ok()
        .flatten();
    match named {
        Some(date) if date != OLDEST_NAMED && Version::parse(date).is_none() => {
            let words = "the header MCP-Protocol-Version names a version that is not served; \
                         served are 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28";
            Err(refuse(
                StatusCode::BAD_REQUEST,
                None,
                &RpcError::invalid_request(words),
            ))
        }
        _ => Ok(()),
    }
}

fn initialize(endpoint: &Endpoint, admitted: &Admitted, request: &Request) -> Response<Body> {
    let Some(asked) = request
        .params
        .get("protocolVersion")
        .and_then(Value::as_str)
    else {
        let error = RpcError::invalid_params(
            "initialize needs params.protocolVersion, a date such as 2025-11-25",
        );
        return json_response(StatusCode::OK, wire::error(Some(&request.id), &error));
    };
    let version = Version::negotiate(asked);
    let none = Map::new();
    let declared = request
        .params
        .get("capabilities")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    let (id, _) = endpoint
        .sessions()
        .create(admitted.who().agent_id().as_str(), version, declared);
    let catalog = &endpoint.engine().catalog;
    let mut server = json!(catalog.server);
    if version < Version::V2025_06_18
        && let Some(server) = server.as_object_mut()
    {
        server.remove("title");
    }
    let mut result = json!({
        "protocolVersion": version.as_str(),
        "capabilities": catalog.capabilities().to_object(),
        "serverInfo": server,
    });
    if let (Some(text), Some(object)) = (&catalog.instructions, result.as_object_mut()) {
        object.insert("instructions".into(), json!(text));
    }
    let mut response = json_response(StatusCode::OK, wire::answer(Some(&request.id), Ok(&result)));
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(SESSION, id);
    }
    response
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

async fn serve(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    session: &Arc<Session>,
    request: Request,
) -> Response<Body> {
    let accepts = Accepts::read(&admitted.head().headers);
    let token = request
        .params
        .get("_meta")
        .and_then(|m| m.get("progressToken"))
        .cloned();
    let answering = start(endpoint, session, request, &admitted, accepts.events);
    respond(answering, accepts, token, admitted.into_permit()).await
}

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
        "server/discover" | "subscriptions/listen" => {
            Some(Err(RpcError::method_not_found(&request.method)))
        }
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
