//! The headers of a stateless request (2026-07-28): a request is accepted only if they match its body.

use std::sync::LazyLock;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::header_values::{decoded_by_the_book, encoded, says};
use super::input::{headers, parts};
use gatewren_server::transport::check_headers;
use gatewren_wire::protocol::{RpcBody, RpcMessage, RpcRequest, code, read};

/// The marks in the called tool's schema: header name, and path of the argument.
static MARKED: LazyLock<Vec<(String, Vec<String>)>> = LazyLock::new(|| {
    [("Region", "region"), ("Count", "count"), ("On", "deep.on")]
        .map(|(header, way)| (header.into(), way.split('.').map(str::to_owned).collect()))
        .into()
});

/// First part: header lines; second part: a request.
pub fn agree_with_the_body(data: &[u8]) {
    let [head, body] = parts(data);
    let Ok(RpcBody::Single(RpcMessage::Request(request))) = read(body) else {
        return;
    };
    let given = headers(head);
    let marked: &[_] = match &*request.method {
        "tools/call" => &MARKED,
        _ => &[],
    };
    match check_headers(&given, &request, marked) {
        Ok(()) => assert!(agrees(&given, &request), "{given:?} for {request:?}"),
        Err(error) => {
            assert_eq!(error.code, code::HEADER_MISMATCH);
            assert!(
                !agrees(&given, &request),
                "{error}: {given:?} for {request:?}"
            );
        }
    }
    if let Some(conforming) = written_by_a_client(&request) {
        let outcome = check_headers(&conforming, &request, marked);
        assert_eq!(outcome, Ok(()), "{conforming:?} for {request:?}");
    }
}

/// The parameter that `Mcp-Name` repeats, by method.
fn named_by(request: &RpcRequest) -> Option<&'static str> {
    match &*request.method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

fn parameter<'a>(request: &'a RpcRequest, field: &str) -> Option<&'a str> {
    request.params.get(field).and_then(Value::as_str)
}

/// The arguments that are present and repeated, with the names of their headers.
fn repeated(request: &RpcRequest) -> Vec<(String, &Value)> {
    let arguments = request.params.get("arguments").filter(|a| a.is_object());
    let (Some(arguments), "tools/call") = (arguments, &*request.method) else {
        return Vec::new();
    };
    let marked = MARKED.iter().filter_map(|(header, way)| {
        let way = format!("/{}", way.join("/"));
        let argument = arguments.pointer(&way).filter(|value| !value.is_null());
        Some((format!("mcp-param-{header}"), argument?))
    });
    marked.collect()
}

/// Whether each required header is present once and matches the body.
fn agrees(headers: &HeaderMap, request: &RpcRequest) -> bool {
    let decoded = |name: &str| match one(headers, name) {
        Ok(Some(raw)) => decoded_by_the_book(raw).map(Some).ok_or(Unreadable),
        Ok(None) => Ok(None),
        Err(unreadable) => Err(unreadable),
    };
    let named = named_by(request).is_none_or(|field| {
        let given = decoded("mcp-name");
        given.is_ok_and(|given| given.as_deref() == parameter(request, field))
    });
    let said = repeated(request).into_iter().all(|(header, argument)| {
        let given = decoded(&header).ok().flatten();
        given.is_some_and(|given| says(&given, argument))
    });
    one(headers, "mcp-method") == Ok(Some(&*request.method)) && named && said
}

/// The header appears twice, or contains other characters than visible ASCII.
#[derive(PartialEq)]
struct Unreadable;

/// The single value of a header, if present.
fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Unreadable> {
    let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
    let text = match values.as_slice() {
        [] => return Ok(None),
        [value] => std::str::from_utf8(value.as_bytes()).ok(),
        _ => None,
    };
    let visible = |text: &&str| text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t'));
    let text = text.filter(visible).ok_or(Unreadable)?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

/// The headers that a conforming client sends; `None` for a method that no header can represent.
fn written_by_a_client(request: &RpcRequest) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    let method = &*request.method;
    if encoded(method) != method {
        return None;
    }
    headers.insert("mcp-method", method.parse().ok()?);
    if let Some(name) = named_by(request).and_then(|field| parameter(request, field)) {
        headers.insert("mcp-name", encoded(name).parse().ok()?);
    }
    for (header, argument) in repeated(request) {
        let value = match argument {
            Value::String(text) => encoded(text).into_owned(),
            Value::Bool(_) => argument.to_string(),
            Value::Number(number) if !number.is_f64() => number.to_string(),
            // Arguments that violate the schema have no header.
            _ => return None,
        };
        headers.insert(HeaderName::try_from(header).ok()?, value.parse().ok()?);
    }
    Some(headers)
}
