//! The headers of a stateless request, which repeat parts of its body (2026-07-28, streamable HTTP).

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};

use gatewren_protocol::{RpcRequest, ToolDefinition, header_parameters};

/// The header with the protocol version of a request.
pub const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// How many tools with marked arguments are remembered; arguments of further tools are not repeated
/// in headers.
const MAX_MARKED: usize = 1024;

/// The arguments that tools want repeated as `Mcp-Param-*`, by the tool's name. Most tools mark
/// none.
pub type ParamHeaders = HashMap<String, Vec<(String, Vec<String>)>>;

/// Returns the headers of a request.
pub fn of(request: &RpcRequest, version: &str, marked: &ParamHeaders) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(VERSION, value(version));
    let method = HeaderName::from_static("mcp-method");
    headers.insert(method, value(&request.method));
    let field = match &*request.method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return headers,
    };
    let Some(name) = request.params.get(field).and_then(Value::as_str) else {
        return headers;
    };
    headers.insert(HeaderName::from_static("mcp-name"), value(name));
    if request.method == "tools/call"
        && let Some(marks) = marked.get(name)
    {
        repeat(&mut headers, request, marks);
    }
    headers
}

fn repeat(headers: &mut HeaderMap, request: &RpcRequest, marks: &[(String, Vec<String>)]) {
    let none = Map::new();
    let arguments = request.params.get("arguments").and_then(Value::as_object);
    for (suffix, path) in marks {
        let name = format!("mcp-param-{}", suffix.to_ascii_lowercase());
        let text = match ToolDefinition::argument(arguments.unwrap_or(&none), path) {
            Some(Value::String(text)) => text.clone(),
            Some(other @ (Value::Bool(_) | Value::Number(_))) => other.to_string(),
            _ => continue,
        };
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
            headers.insert(name, value(&text));
        }
    }
}

/// Encodes text as a header value: unchanged if possible, otherwise as marked base64.
fn value(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim_matches([' ', '\t']) == text
        && !text.starts_with("=?base64?");
    let written = match HeaderValue::from_str(text) {
        Ok(written) if plain => return written,
        _ => format!("=?base64?{}?=", STANDARD.encode(text)),
    };
    HeaderValue::from_str(&written).unwrap_or(HeaderValue::from_static(""))
}

/// Remembers which arguments a list of tools marks.
pub fn learn(marked: &mut ParamHeaders, result: &str) {
    #[derive(Deserialize)]
    struct List {
        tools: Vec<Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        name: String,
        #[serde(rename = "inputSchema")]
        schema: Value,
    }
    // Most lists mark nothing and need no parsing.
    if !result.contains("x-mcp-header") {
        return;
    }
    let Ok(list) = serde_json::from_str::<List>(result) else {
        return;
    };
    for Listed { name, schema } in list.tools {
        // Clients must not call a tool whose marks are invalid.
        let marks = header_parameters(&schema).unwrap_or_default();
        if marks.is_empty() {
            marked.remove(&name);
        } else if marked.len() < MAX_MARKED || marked.contains_key(&name) {
            marked.insert(name, marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewren_protocol::{RpcBody, RpcMessage, decode_header_value, read};
    use serde_json::json;

    fn headers(method: &str, params: &Value, marked: &ParamHeaders) -> Vec<(String, String)> {
        let text = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let Ok(RpcBody::Single(RpcMessage::Request(request))) = read(text.to_string().as_bytes())
        else {
            panic!("no request");
        };
        let headers = of(&request, "2026-07-28", marked);
        let shown = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.to_str().unwrap().to_owned())
        };
        let mut headers: Vec<_> = headers.iter().map(shown).collect();
        headers.sort();
        headers
    }

    #[test]
    fn a_header_says_what_the_body_says() {
        let none = ParamHeaders::new();
        let names = |method: &str, params: Value| {
            let found = headers(method, &params, &none).into_iter();
            let found = found.filter(|(name, _)| name == "mcp-name");
            found.map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert!(names("tools/list", json!({ "name": "x" })).is_empty());
        assert_eq!(names("tools/call", json!({ "name": "a_tool" })), ["a_tool"]);
        assert_eq!(names("resources/read", json!({ "uri": "a:b" })), ["a:b"]);
        assert_eq!(names("tasks/get", json!({ "taskId": "t" })), ["t"]);
        let both = headers("tools/list", &json!({}), &none);
        let expected = [
            ("mcp-method", "tools/list"),
            ("mcp-protocol-version", "2026-07-28"),
        ];
        assert_eq!(
            both,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for odd in ["käse", " x", "x ", "=?base64?eA==?=", "a\nb"] {
            let text = value(odd);
            assert_eq!(decode_header_value(text.to_str().unwrap()).unwrap(), odd);
        }
    }

    #[test]
    fn marked_arguments_are_repeated() {
        let mut marked = ParamHeaders::new();
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"}}});
        let list = json!({"tools": [{"name": "t", "inputSchema": schema}]});
        learn(&mut marked, &list.to_string());
        assert_eq!(marked.len(), 1);
        let call = json!({"name": "t", "arguments": {"region": "north", "n": 7}});
        let found = headers("tools/call", &call, &marked);
        for expected in [("mcp-param-region", "north"), ("mcp-param-n", "7")] {
            let expected = (expected.0.to_owned(), expected.1.to_owned());
            assert!(found.contains(&expected), "{found:?}");
        }
        let list = json!({"tools": [{"name": "t", "inputSchema": {"type": "object", "note": "x-mcp-header"}}]});
        learn(&mut marked, &list.to_string());
        assert!(marked.is_empty());
    }
}
