//! The headers that repeat parts of a 2026-07-28 request's body for proxies: they must match the body.

use std::borrow::Cow;

use hyper::header::HeaderMap;
use serde_json::{Map, Value};

use crate::dispatch::Engine;
use gatewren_wire::protocol::{
    RpcError, RpcRequest, ToolDefinition, decode_header_value, matches_argument,
};

/// The header of the protocol version.
pub const VERSION: &str = "mcp-protocol-version";

/// Returns the value of a header. A repeated header, or one that is not visible ASCII, is refused.
pub fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().ok().filter(|_| values.next().is_none());
    text.map(|text| Some(text.trim_matches([' ', '\t'])))
        .ok_or_else(|| {
            RpcError::header_mismatch(format!(
                "the header {name} must appear only once, in visible ASCII"
            ))
        })
}

/// The arguments that a request repeats as `Mcp-Param-*` headers: those that the called tool's schema marks.
pub fn repeated_arguments<'a>(
    engine: &'a Engine,
    request: &RpcRequest,
) -> &'a [(String, Vec<String>)] {
    let calls = request.method == "tools/call";
    let name = request.params.get("name").and_then(Value::as_str);
    let tool = name
        .filter(|_| calls)
        .and_then(|name| engine.catalog.tool(name));
    tool.map_or(&[], |tool| tool.header_parameters())
}

/// Checks `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` against the body.
pub fn check(
    headers: &HeaderMap,
    request: &RpcRequest,
    repeated: &[(String, Vec<String>)],
) -> Result<(), RpcError> {
    let method = single(headers, "mcp-method")?;
    if method != Some(&*request.method) {
        return Err(mismatch("Mcp-Method", "method", method.is_some()));
    }
    if let Some((field, expected)) = name_of(request) {
        let given = decode_header(headers, "mcp-name")?;
        if given.as_deref() != expected {
            return Err(mismatch("Mcp-Name", field, given.is_some()));
        }
    }
    check_arguments(headers, request, repeated)
}

/// The parameter that `Mcp-Name` repeats, by method.
fn name_of(request: &RpcRequest) -> Option<(&'static str, Option<&str>)> {
    let text = |field: &str| request.params.get(field).and_then(Value::as_str);
    match &*request.method {
        "tools/call" | "prompts/get" => Some(("params.name", text("name"))),
        "resources/read" => Some(("params.uri", text("uri"))),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(("params.taskId", text("taskId"))),
        _ => None,
    }
}

fn check_arguments(
    headers: &HeaderMap,
    request: &RpcRequest,
    repeated: &[(String, Vec<String>)],
) -> Result<(), RpcError> {
    let none = Map::new();
    let arguments = request
        .params
        .get("arguments")
        .and_then(Value::as_object)
        .unwrap_or(&none);
    for (suffix, path) in repeated {
        let Some(argument) = ToolDefinition::argument(arguments, path) else {
            continue;
        };
        let header = format!("mcp-param-{}", suffix.to_ascii_lowercase());
        let given = decode_header(headers, &header)?;
        if !given
            .as_deref()
            .is_some_and(|text| matches_argument(text, argument))
        {
            return Err(mismatch(&header, &path.join("."), given.is_some()));
        }
    }
    Ok(())
}

fn decode_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
    let Some(raw) = single(headers, name)? else {
        return Ok(None);
    };
    decode_header_value(raw).map(Some).map_err(|cause| {
        RpcError::header_mismatch(format!("the header {name} is invalid: {cause}"))
    })
}

fn mismatch(header: &str, field: &str, present: bool) -> RpcError {
    let what = if present {
        "differs from"
    } else {
        "is missing; it must repeat"
    };
    RpcError::header_mismatch(format!("the header {header} {what} the body's {field}"))
}
