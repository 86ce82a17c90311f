//! 2026-07-28: every request stands alone, its `_meta` says everything, its headers agree with it.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::{
    endpoint::Endpoint,
    headers,
    pulse::Pulse,
    stream::{Accepts, Answering, End, respond},
    wire,
};
use crate::dispatch::{Call, Context, Engine, Outcome, Reply, subscription_ended};
use crate::guard::Admitted;
use crate::http::{Body, empty, json as json_response};
use crate::protocol::{
    Id, IncomingNotification, MODERN_VERSIONS, Message, Request, RequestMeta, RpcError, Version,
    code,
};

/// Answers one message of the stateless era.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    message: Message,
) -> Response<Body> {
    match message {
        Message::Response(_) => {
            let error = RpcError::invalid_request("a client of 2026-07-28 sends no responses");
            refuse(None, &error)
        }
        Message::Notification(note) => match check_notification(&admitted, &note) {
            Ok(()) => empty(StatusCode::ACCEPTED),
            Err(error) => refuse(None, &error),
        },
        Message::Request(request) => match check(endpoint, &admitted, &request) {
            Ok(meta) => serve(endpoint, admitted, request, meta).await,
            Err(error) => refuse(Some(&request.id), &error),
        },
    }
}

/// What stands before dispatch, each with a status of its own.
fn check(
    endpoint: &Endpoint,
    admitted: &Admitted,
    request: &Request,
) -> Result<RequestMeta, RpcError> {
    let headers = &admitted.head().headers;
    let version = headers::single(headers, headers::VERSION)?;
    let claim = RequestMeta::claim(&request.params).and_then(Value::as_str);
    agree(version, claim)?;
    let meta = RequestMeta::read(&request.params)?;
    served(&meta.version)?;
    if version.is_none() {
        return Err(RpcError::header_mismatch(
            "the header MCP-Protocol-Version is missing",
        ));
    }
    let repeated = headers::repeated(endpoint.engine(), request);
    headers::check(headers, request, repeated)?;
    if endpoint.engine().serves(&request.method) {
        Ok(meta)
    } else {
        Err(RpcError::method_not_found(&request.method))
    }
}

/// A header and a claim, where both are there, name the same version.
fn agree(header: Option<&str>, claim: Option<&str>) -> Result<(), RpcError> {
    match (header, claim) {
        (Some(header), Some(claim)) if header != claim => Err(RpcError::header_mismatch(
            "the header MCP-Protocol-Version differs from the body's _meta",
        )),
        _ => Ok(()),
    }
}

fn served(version: &str) -> Result<(), RpcError> {
    if MODERN_VERSIONS.contains(&version) {
        return Ok(());
    }
    let data = json!({ "supported": MODERN_VERSIONS, "requested": version });
    let words = "this protocol version is not served";
    Err(RpcError::new(code::UNSUPPORTED_VERSION, words).with_data(data))
}

/// The specification leaves a notification's headers open: what is there must be right.
fn check_notification(admitted: &Admitted, note: &IncomingNotification) -> Result<(), RpcError> {
    let headers = &admitted.head().headers;
    let version = headers::single(headers, headers::VERSION)?;
    let claim = RequestMeta::claim(&note.params).and_then(Value::as_str);
    agree(version, claim)?;
    version.or(claim).map_or(Ok(()), served)?;
    match headers::single(headers, "mcp-method")? {
        Some(method) if method != note.method => Err(RpcError::header_mismatch(
            "the header Mcp-Method differs from the body's method",
        )),
        _ => Ok(()),
    }
}

async fn serve(
    endpoint: &Arc<Endpoint>,
    admitted: Admitted,
    request: Request,
    meta: RequestMeta,
) -> Response<Body> {
    let accepts = Accepts::read(&admitted.head().headers);
    let context = Context {
        who: admitted.who().clone(),
        address: admitted.peer().ip(),
        session: None,
        capabilities: meta.capabilities,
        log_level: meta.log_level,
        hears_notes: accepts.events,
        hang_up: None,
    };
    let Request { id, method, params } = request;
    let token = meta.progress_token;
    let mut call = Call {
        id,
        method,
        params,
        context,
        inputs: None,
        held: None,
    };
    if call.method == "subscriptions/listen" {
        return listen(endpoint, &admitted, call, accepts).await;
    }
    if !endpoint.engine().answers_at_once(&call.method) {
        match endpoint.call(&admitted) {
            Ok(place) => call.held = Some(place),
            Err(refusal) => return endpoint.turn_away(&refusal),
        }
    }
    let held = call.held.clone();
    let (id, who, house) = (call.id.clone(), call.context.who.clone(), endpoint.clone());
    let pulse = Pulse::new(token, endpoint.heartbeat());
    let Reply { notes, outcome } = endpoint.engine().answer(call);
    let end = Box::pin(async move {
        Some(tokio::select! {
            biased;
            outcome = outcome => end(house.engine(), &id, outcome),
            () = house.guard().expelled(&who) => End::expelled(&id),
        })
    });
    let answering = Answering {
        notes,
        hang_up: None,
        end,
    };
    respond(answering, accepts, pulse, held).await
}

/// A subscription: a stream that is counted apart from calls, and that ends with its agent.
async fn listen(
    endpoint: &Arc<Endpoint>,
    admitted: &Admitted,
    call: Call,
    accepts: Accepts,
) -> Response<Body> {
    if !accepts.events && !accepts.anything {
        let error =
            RpcError::invalid_request("a subscription needs the header Accept: text/event-stream");
        return json_response(
            StatusCode::NOT_ACCEPTABLE,
            wire::error(Some(&call.id), &error),
        );
    }
    let place = match endpoint.stream(admitted) {
        Ok(place) => place,
        Err(refusal) => return endpoint.turn_away(&refusal),
    };
    let (id, who, guard) = (call.id.clone(), call.context.who.clone(), endpoint.clone());
    let Reply { notes, outcome } = endpoint.engine().answer(call);
    let end = Box::pin(async move {
        tokio::select! {
            outcome = outcome => Some(end(guard.engine(), &id, outcome)),
            () = guard.guard().expelled(&who) => {
                let server = &guard.engine().catalog.server;
                Some(end(guard.engine(), &id, Ok(subscription_ended(json!(id), server))))
            }
        }
    });
    respond(
        Answering {
            notes,
            hang_up: None,
            end,
        },
        Accepts {
            events: true,
            ..accepts
        },
        Pulse::new(None, Duration::ZERO),
        place,
    )
    .await
}

fn end(engine: &Engine, id: &Id, outcome: Result<Outcome, RpcError>) -> End {
    let server = &engine.catalog.server;
    match outcome {
        Ok(Outcome::Complete(result)) => End {
            status: StatusCode::OK,
            body: wire::answer(Some(id), Ok(&result)),
        },
        Ok(Outcome::Listed(list)) => End {
            status: StatusCode::OK,
            body: wire::listed(id, &list, Version::V2026_07_28),
        },
        Ok(Outcome::Ask(question, sealed)) => {
            let mut result = question.to_result(sealed);
            server.sign(&mut result);
            End {
                status: StatusCode::OK,
                body: wire::answer(Some(id), Ok(&result)),
            }
        }
        Err(error) => {
            // Found by the tool itself, a missing capability is still the request's fault.
            let missing = error.code == code::MISSING_CAPABILITY;
            let status = if missing {
                StatusCode::BAD_REQUEST
            } else {
                StatusCode::OK
            };
            End {
                status,
                body: wire::answer(Some(id), Err(&error)),
            }
        }
    }
}

fn refuse(id: Option<&Id>, error: &RpcError) -> Response<Body> {
    let missing = error.code == code::METHOD_NOT_FOUND;
    let status = if missing {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::BAD_REQUEST
    };
    json_response(status, wire::error(id, error))
}
