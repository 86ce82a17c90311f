//! Protocol 2026-07-28: each request is self-contained and is cancelled by closing its stream.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;

use super::answer::{ForwardOutcome, ResponseRoute, client_error, is_repeatable};
use super::headers::{learn, of as headers_of};
use super::link::BridgeState;
use super::peek::PeekedMessage;
use super::server::UpstreamRequest;
use gatewren_portable::lock;
use gatewren_protocol::RpcRequest;

/// Returns the HTTP request for a message.
pub fn make_request(
    link: &BridgeState,
    request: &RpcRequest,
    version: &str,
    body: Bytes,
) -> UpstreamRequest {
    UpstreamRequest {
        method: Method::POST,
        headers: headers_of(request, version, &lock(&link.marked)),
        body,
        repeatable: is_repeatable(&request.method),
    }
}

/// Forwards a request and its response. A repeatable request is retried once when its response
/// breaks off.
pub async fn forward(link: Arc<BridgeState>, request: RpcRequest, http_request: UpstreamRequest) {
    let lists = request.method == "tools/list";
    let way = ResponseRoute {
        server: &link.server,
        output: Some(&link.output),
        keeps: lists,
    };
    let mut tries = 0;
    let failure = loop {
        tries += 1;
        let answer = match link.server.ask(&http_request).await {
            Ok(answer) => answer,
            Err(failure) => break failure,
        };
        match way.forward(answer, &request.id).await {
            ForwardOutcome::Answered(kept) => {
                let result = kept.as_deref().and_then(PeekedMessage::at);
                if let Some(result) = result.and_then(|peek| peek.result) {
                    learn(&mut lock(&link.marked), result.get());
                }
                return;
            }
            ForwardOutcome::Cut { why, .. }
                if tries > 1 || !why.may_retry(http_request.repeatable) =>
            {
                break why;
            }
            ForwardOutcome::Cut { .. } => {}
        }
    };
    let error = client_error(&failure, http_request.repeatable);
    link.output.reject(Some(&request.id), &error).await;
}
