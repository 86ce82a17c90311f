//! The names in a request: its method and its tool.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::Deserialize;

/// The maximum length of a body whose names are read. A longer request is rejected.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// What the row says about a request.
pub struct Names {
    /// The method; empty if the request has none.
    pub method: String,
    /// The tool of `tools/call`.
    pub tool: Option<String>,
}

/// The used part of a body.
#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
}

/// Returns the names, and the request with its body; `None` if the body is too long or the connection has broken.
///
/// In 2026-07-28 the headers have the names. Before, only the body has them, so it is read here as well as by the
/// peer, as every guard of that revision has to.
pub async fn names(request: Request<Incoming>) -> Option<(Names, Request<Body>)> {
    if let Some(method) = header(request.headers(), "mcp-method") {
        let tool = header(request.headers(), "mcp-name");
        return Some((Names { method, tool }, request.map(Body::new)));
    }
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.ok()?;
    let body = body.to_bytes();
    let names = match serde_json::from_slice::<Called<'_>>(&body) {
        Ok(called) => Names {
            method: called.method.into_owned(),
            tool: called
                .params
                .and_then(|params| params.name)
                .map(Cow::into_owned),
        },
        // The peer rejects it.
        Err(_) => Names {
            method: String::new(),
            tool: None,
        },
    };
    Some((names, Request::from_parts(parts, Body::from(body))))
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}
