//! 2026-07-28: every request is self-contained: its `_meta` has all context, and its headers must match its body.

use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::endpoint::{Endpoint, sender};
use super::keepalive::ProgressKeepAlive;
use super::response_end::{CallFuture, ResponseEnd, ResponseFuture};
use super::response_future::RequestAnswer;
use super::stream::{AcceptedForms, PendingReply, respond};
use super::subscription::HeldSubscription;
use super::{headers, wire};
use crate::dispatch::{Call, CallContext, CallReply, HeldResource};
use gatewren_gate::guard::{Admitted, Refusal};
use gatewren_gate::http::{ResponseBody, empty, events, json as json_response};
use gatewren_wire::protocol::{
    IncomingNotification, MODERN_VERSIONS, Notification, RequestId, RequestMeta, RpcError,
    RpcMessage, RpcRequest, code,
};

/// The method that starts a subscription.
pub const LISTEN: &str = "subscriptions/listen";

/// Answers a message of the stateless era.
pub fn answer(endpoint: &Arc<Endpoint>, admitted: &Admitted, message: RpcMessage) -> RequestAnswer {
    match message {
        RpcMessage::Response(_) => {
            let error = RpcError::invalid_request("a client of 2026-07-28 must not send responses");
            refuse(None, &error).into()
        }
        RpcMessage::Notification(note) => match check_notification(admitted, &note) {
            Ok(()) => empty(StatusCode::ACCEPTED).into(),
            Err(error) => refuse(None, &error).into(),
        },
        RpcMessage::Request(request) => match check(endpoint, admitted, &request) {
            Ok(meta) => serve(endpoint, admitted, request, meta),
            Err(error) => refuse(Some(&request.id), &error).into(),
        },
    }
}

/// The checks before dispatch, each with its own status.
fn check(
    endpoint: &Endpoint,
    admitted: &Admitted,
    request: &RpcRequest,
) -> Result<RequestMeta, RpcError> {
    let headers = &admitted.head().headers;
    let version = headers::single(headers, headers::VERSION)?;
    let claim = RequestMeta::claim(&request.params).and_then(Value::as_str);
    agree(version, claim)?;
    let meta = read_meta(request)?;
    if version.is_none() {
        return Err(RpcError::header_mismatch(
            "the header MCP-Protocol-Version is missing",
        ));
    }
    let repeated = headers::repeated_arguments(endpoint.engine(), request);
    headers::check(headers, request, repeated)?;
    let engine = endpoint.engine();
    if engine.serves(&request.method) && (engine.streams() || request.method != LISTEN) {
        Ok(meta)
    } else {
        Err(RpcError::method_not_found(&request.method))
    }
}

/// Checks that a version header and a claim in the body match, if both are present.
fn agree(header: Option<&str>, claim: Option<&str>) -> Result<(), RpcError> {
    match (header, claim) {
        (Some(header), Some(claim)) if header != claim => Err(RpcError::header_mismatch(
            "the header MCP-Protocol-Version differs from the body's _meta",
        )),
        _ => Ok(()),
    }
}

/// Reads a request's `_meta`; the version must be a supported one.
pub fn read_meta(request: &RpcRequest) -> Result<RequestMeta, RpcError> {
    let (version, meta) = RequestMeta::read(&request.params)?;
    check_version(version)?;
    Ok(meta)
}

fn check_version(version: &str) -> Result<(), RpcError> {
    if MODERN_VERSIONS.contains(&version) {
        return Ok(());
    }
    let data = json!({ "supported": MODERN_VERSIONS, "requested": version });
    let words = "unsupported protocol version";
    Err(RpcError::new(code::UNSUPPORTED_VERSION, words).with_data(data))
}

/// The specification does not require headers for a notification, but those that are present must be right.
fn check_notification(admitted: &Admitted, note: &IncomingNotification) -> Result<(), RpcError> {
    let headers = &admitted.head().headers;
    let version = headers::single(headers, headers::VERSION)?;
    let claim = RequestMeta::claim(&note.params).and_then(Value::as_str);
    agree(version, claim)?;
    version.or(claim).map_or(Ok(()), check_version)?;
    match headers::single(headers, "mcp-method")? {
        Some(method) if method != note.method => Err(RpcError::header_mismatch(
            "the header Mcp-Method differs from the body's method",
        )),
        _ => Ok(()),
    }
}

fn serve(
    endpoint: &Arc<Endpoint>,
    admitted: &Admitted,
    request: RpcRequest,
    meta: RequestMeta,
) -> RequestAnswer {
    let accepts = AcceptedForms::read(&admitted.head().headers, endpoint.engine().streams());
    let keep_alive = ProgressKeepAlive::new(meta.progress_token.clone(), endpoint.heartbeat());
    let call = call(request, meta, &sender(admitted), accepts.events);
    if call.method == LISTEN {
        return listen(endpoint, call, accepts);
    }
    let mut call = call;
    match place(endpoint, &call) {
        Ok(held) => call.held = held,
        Err(_) => return serve_when_free(endpoint, call, accepts, keep_alive),
    }
    let (answering, held) = begin(endpoint, call);
    RequestAnswer::reply(answering, accepts, keep_alive, held)
}

/// The same for a call that waits a short time for its slot.
fn serve_when_free(
    endpoint: &Arc<Endpoint>,
    mut call: Call,
    accepts: AcceptedForms,
    keep_alive: ProgressKeepAlive,
) -> RequestAnswer {
    let endpoint = endpoint.clone();
    RequestAnswer::later(async move {
        let place = endpoint.call_in_time(&call.context, &call.method, &call.params);
        match place.await {
            Ok(held) => call.held = Some(held),
            Err(refusal) => return endpoint.reject(&refusal),
        }
        let (answering, held) = begin(&endpoint, call);
        respond(answering, accepts, keep_alive, held).await
    })
}

/// Builds the call of a request.
pub fn call(
    request: RpcRequest,
    meta: RequestMeta,
    sender: &CallContext,
    accepts_notifications: bool,
) -> Call {
    let RpcRequest { id, method, params } = request;
    let context = CallContext {
        capabilities: meta.capabilities,
        log_level: meta.log_level,
        accepts_notifications,
        ..sender.clone()
    };
    Call {
        id,
        method,
        params,
        context,
        inputs: None,
        held: None,
    }
}

/// Starts a call, which ends when its agent's access ends. Its slot is released when the last holder drops it.
pub fn start(
    endpoint: &Arc<Endpoint>,
    mut call: Call,
) -> Result<(PendingReply<Notification>, Option<HeldResource>), Refusal> {
    call.held = place(endpoint, &call)?;
    Ok(begin(endpoint, call))
}

/// Reserves a slot for a call that is not answered synchronously.
fn place(endpoint: &Endpoint, call: &Call) -> Result<Option<HeldResource>, Refusal> {
    if endpoint.engine().answers_at_once(&call.method) {
        return Ok(None);
    }
    endpoint
        .call(&call.context, &call.method, &call.params)
        .map(Some)
}

fn begin(
    endpoint: &Arc<Endpoint>,
    call: Call,
) -> (PendingReply<Notification>, Option<HeldResource>) {
    let held = call.held.clone();
    let id = call.id.clone();
    let who = call.context.who.clone();
    let CallReply { notes, outcome } = endpoint.engine().answer(call);
    let calling = CallFuture::new(endpoint.clone(), id, who, outcome);
    let answering = PendingReply {
        notes,
        disconnect: None,
        end: ResponseFuture::Call(calling),
    };
    (answering, held)
}

/// A subscription: a stream that is counted separately from calls, and that ends when its agent's access or reach
/// changes.
fn listen(endpoint: &Arc<Endpoint>, call: Call, accepts: AcceptedForms) -> RequestAnswer {
    if !accepts.events && !accepts.anything {
        let error = RpcError::invalid_request(
            "a subscription requires the header Accept: text/event-stream",
        );
        return json_response(
            StatusCode::NOT_ACCEPTABLE,
            wire::error(Some(&call.id), &error),
        )
        .into();
    }
    let accepts = AcceptedForms {
        events: true,
        ..accepts
    };
    let id = call.id.clone();
    match HeldSubscription::begin(endpoint, call) {
        Ok(Ok(subscription)) => events(move |sender| async move {
            let _ = subscription.send(sender).await;
        })
        .into(),
        Ok(Err(error)) => {
            let end = ResponseEnd::of(endpoint.engine(), &id, Err(error));
            let answering = PendingReply {
                notes: None,
                disconnect: None,
                end: ResponseFuture::when(std::future::ready(Some(end))),
            };
            RequestAnswer::reply(answering, accepts, ProgressKeepAlive::silent(), None)
        }
        Err(refusal) => endpoint.reject(&refusal).into(),
    }
}

fn refuse(id: Option<&RequestId>, error: &RpcError) -> Response<ResponseBody> {
    let missing = error.code == code::METHOD_NOT_FOUND;
    let status = if missing {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::BAD_REQUEST
    };
    json_response(status, wire::error(id, error))
}
