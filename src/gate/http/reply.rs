//! The kinds of responses.

use bytes::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::{
    body::ResponseBody,
    event_stream::{EventSender, EventStream},
};

/// Header capacity for the requests that MCP clients send: hyper reads a connection's next head into the memory of
/// the previous response's headers.
const NEXT_HEAD: usize = 12;

/// Returns a JSON response with a status.
pub fn json(status: StatusCode, bytes: Vec<u8>) -> Response<ResponseBody> {
    of_json(status, ResponseBody::whole(bytes))
}

/// Returns a JSON response in parts that can be shared, for long bodies.
pub fn json_in_parts(status: StatusCode, parts: Vec<Bytes>) -> Response<ResponseBody> {
    of_json(status, ResponseBody::Parts(parts.into_iter()))
}

fn of_json(status: StatusCode, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = HeaderMap::with_capacity(NEXT_HEAD);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns plain text.
pub fn text(text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(text));
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    response
}

/// Returns only a status.
pub fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}

/// Returns a stream of events; `make` runs while the client reads it.
pub fn events<F>(make: impl FnOnce(EventSender) -> F) -> Response<ResponseBody>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut response = Response::new(ResponseBody::Events(Box::new(EventStream::from_producer(
        make,
    ))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Otherwise nginx and similar proxies would buffer events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
