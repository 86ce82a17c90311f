//! The floor: the least code that responds correctly to a call. No schemas, no token, no policy, no audit.

use std::borrow::Cow;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::bare::Events;

/// The path of the floor on the anchor.
pub const FLOOR: &str = "/floor";

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Responds to a call of `echo`.
pub async fn floor(request: Request<Incoming>) -> Response<Either<Full<Bytes>, Events>> {
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes);
    let answer = body.ok().and_then(|body| said(&body).ok());
    let status = match answer {
        Some(_) => StatusCode::OK,
        None => StatusCode::BAD_REQUEST,
    };
    let body = Full::new(Bytes::from(answer.unwrap_or_default()));
    let mut response = Response::new(Either::Left(body));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn said(body: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let call: Call<'_> = serde_json::from_slice(body)?;
    let mut out = Vec::with_capacity(body.len() + 128);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(call.id.get().as_bytes());
    out.extend_from_slice(
        br#","result":{"resultType":"complete","content":[{"type":"text","text":"#,
    );
    serde_json::to_writer(&mut out, &call.params.arguments.text)?;
    out.extend_from_slice(br#"}],"isError":false}}"#);
    Ok(out)
}
